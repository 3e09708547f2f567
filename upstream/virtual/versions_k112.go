//go:build k1.12 && !k1.23

package virtual

import autoscalingv2beta2 "k8s.io/api/autoscaling/v2beta2"

type (
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2beta2.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2beta2.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2beta2.SchemeGroupVersion
