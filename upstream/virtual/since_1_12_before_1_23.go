//go:build k1.12 && !k1.23

package virtual

import autoscalingv2beta2 "k8s.io/api/autoscaling/v2beta2"

type (
	// shownHPA is an HPA in the version of responses.
	shownHPA = autoscalingv2beta2.HorizontalPodAutoscaler
	// shownStatus is a status in the version of responses.
	shownStatus = autoscalingv2beta2.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2beta2.SchemeGroupVersion
