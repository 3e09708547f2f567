//go:build k1.23

package virtual

import autoscalingv2 "k8s.io/api/autoscaling/v2"

type (
	// clientHPA is an HPA as the controller reads and writes it.
	clientHPA = autoscalingv2.HorizontalPodAutoscaler
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2.SchemeGroupVersion

// show is the object as answers show it.
func show(hpa *clientHPA) (*shownHPA, error) { return hpa, nil }
