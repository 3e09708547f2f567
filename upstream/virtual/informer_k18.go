//go:build k1.8 && !k1.23

package virtual

import (
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v1"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v1"
	"k8s.io/client-go/tools/cache"
)

func newHPAInformer(client clientset, by cache.Indexers) hpaInformer {
	return hpaInformer{
		autoscalinginformers.NewHorizontalPodAutoscalerInformer(client, "", factoryResync, by),
	}
}

func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.GetIndexer())
}
