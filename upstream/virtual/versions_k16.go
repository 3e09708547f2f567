//go:build !k1.8

package virtual

import (
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	autoscalingv2alpha1 "k8s.io/kubernetes/pkg/apis/autoscaling/v2alpha1"
)

type (
	// clientHPA is an HPA as the controller reads and writes it.
	clientHPA = HPAv1
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2alpha1.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2alpha1.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2alpha1.SchemeGroupVersion

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
