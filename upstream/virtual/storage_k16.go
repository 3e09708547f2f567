//go:build !k1.27

package virtual

import (
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// storageHPA is an HPA as it is stored.
type storageHPA = HPAv1

// serve is a stored object as clients read it.
func serve(_ *storageHPA, internal *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	served := &clientHPA{}
	// A conversion may share what it converts.
	return served, apiScheme.Convert(copyOf(internal), served, nil)
}
