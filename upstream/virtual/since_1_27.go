//go:build k1.27

package virtual

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// storageHPA is an HPA in the storage version.
type storageHPA = autoscalingv2.HorizontalPodAutoscaler

// serve converts a stored object to the version of clients.
func serve(stored *storageHPA, _ *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	return stored, nil
}
