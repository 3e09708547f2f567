//go:build k1.27

package virtual

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

// storageHPA is an HPA as it is stored.
type storageHPA = autoscalingv2.HorizontalPodAutoscaler

// serve is a stored object as clients read it.
func serve(stored *storageHPA, _ *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	return stored, nil
}
