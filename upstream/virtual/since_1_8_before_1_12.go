//go:build k1.8 && !k1.12

package virtual

import autoscalingv2beta1 "k8s.io/api/autoscaling/v2beta1"

type (
	// shownHPA is an HPA in the version of responses.
	shownHPA = autoscalingv2beta1.HorizontalPodAutoscaler
	// shownStatus is a status in the version of responses.
	shownStatus = autoscalingv2beta1.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2beta1.SchemeGroupVersion
