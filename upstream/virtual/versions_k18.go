//go:build k1.8 && !k1.12

package virtual

import autoscalingv2beta1 "k8s.io/api/autoscaling/v2beta1"

type (
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2beta1.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2beta1.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2beta1.SchemeGroupVersion
