//go:build k1.23

package virtual

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
)

type (
	clientHPAList  = autoscalingv2.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV2Interface
)

func (c clientset) AutoscalingV2() hpaClientGroup { return c.autoscaling() }
