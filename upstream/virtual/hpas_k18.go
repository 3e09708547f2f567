//go:build k1.8 && !k1.23

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v1"
)

type (
	clientHPAList  = autoscalingv1.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV1Interface
)

func (c clientset) AutoscalingV1() hpaClientGroup { return c.autoscaling() }
