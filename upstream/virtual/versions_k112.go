//go:build k1.12 && !k1.23

package virtual

import (
	autoscalingv2beta2 "k8s.io/api/autoscaling/v2beta2"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
)

type (
	// clientHPA is an HPA as the controller reads and writes it.
	clientHPA = HPAv1
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2beta2.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2beta2.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2beta2.SchemeGroupVersion

// show is the object as answers show it: what the controller can read of it.
func show(hpa *clientHPA) (*shownHPA, error) {
	internal := &autoscaling.HorizontalPodAutoscaler{}
	// A conversion may write into what it converts.
	if err := apiScheme.Convert(copyOf(hpa), internal, nil); err != nil {
		return nil, err
	}
	shown := &shownHPA{}
	return shown, apiScheme.Convert(internal, shown, nil)
}
