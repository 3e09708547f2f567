//go:build !k1.8

package virtual

import (
	autoscalingv1 "k8s.io/kubernetes/pkg/apis/autoscaling/v1"
	autoscalingclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/autoscaling/v1"
)

type (
	clientHPAList  = autoscalingv1.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV1Interface
)

func (c clientset) AutoscalingV1() hpaClientGroup { return c.autoscaling() }
