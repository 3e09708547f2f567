//go:build !k1.8

package virtual

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/client/informers/informers_generated/externalversions"
	autoscalinglisters "k8s.io/kubernetes/pkg/client/listers/autoscaling/v1"
)

// newHPAInformer takes one from a factory, as it can't be had otherwise: it indexes by namespace.
func newHPAInformer(client clientset, _ cache.Indexers) hpaInformer {
	factory := externalversions.NewSharedInformerFactory(client, factoryResync)
	return hpaInformer{factory.Autoscaling().V1().HorizontalPodAutoscalers().Informer()}
}

func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.GetIndexer())
}
