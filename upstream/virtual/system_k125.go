//go:build k1.25

package virtual

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// setSystemFields replaces what the API server alone may say of an object that is created.
func setSystemFields(hpa *autoscaling.HorizontalPodAutoscaler) {
	rest.WipeObjectMetaSystemFields(hpa)
	rest.FillObjectMetaSystemFields(hpa)
}
