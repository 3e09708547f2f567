//go:build !k1.8

package virtual

import autoscalingv2alpha1 "k8s.io/kubernetes/pkg/apis/autoscaling/v2alpha1"

type (
	// shownHPA is an HPA as answers show it.
	shownHPA = autoscalingv2alpha1.HorizontalPodAutoscaler
	// shownStatus is a status as answers show it.
	shownStatus = autoscalingv2alpha1.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2alpha1.SchemeGroupVersion
