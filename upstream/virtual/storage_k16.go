//go:build !k1.27

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// storageHPA is an HPA as it is stored.
type storageHPA = autoscalingv1.HorizontalPodAutoscaler

// serve is a stored object as clients read it.
func serve(_ *storageHPA, internal *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	served := &clientHPA{}
	// A conversion may share what it converts.
	return served, legacyscheme.Scheme.Convert(internal.DeepCopy(), served, nil)
}
