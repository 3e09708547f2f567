//go:build k1.25

package virtual

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// setSystemFields sets the fields of a new object that only the API server may set.
func setSystemFields(hpa *autoscaling.HorizontalPodAutoscaler) {
	rest.WipeObjectMetaSystemFields(hpa)
	rest.FillObjectMetaSystemFields(hpa)
}
