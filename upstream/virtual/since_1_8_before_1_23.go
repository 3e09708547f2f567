//go:build k1.8 && !k1.23

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v1"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v1"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v1"
	"k8s.io/client-go/tools/cache"
)

type (
	clientHPAList  = autoscalingv1.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV1Interface
)

func (c clientset) AutoscalingV1() hpaClientGroup { return c.autoscaling() }

func newHPAInformer(client clientset, by cache.Indexers) hpaInformer {
	return hpaInformer{
		autoscalinginformers.NewHorizontalPodAutoscalerInformer(client, "", factoryResync, by),
	}
}

func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.GetIndexer())
}
