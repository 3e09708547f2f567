//go:build k1.23

package virtual

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v2"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	"k8s.io/client-go/tools/cache"
)

type (
	clientHPAList  = autoscalingv2.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV2Interface
)

func (c clientset) AutoscalingV2() hpaClientGroup { return c.autoscaling() }

func newHPAInformer(client clientset, by cache.Indexers) hpaInformer {
	return hpaInformer{
		autoscalinginformers.NewHorizontalPodAutoscalerInformer(client, "", factoryResync, by),
	}
}

func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.GetIndexer())
}

// strict is the serializer that rejects unknown fields.
func strict(info runtime.SerializerInfo) runtime.Serializer { return info.StrictSerializer }

type (
	// clientHPA is an HPA in the version that the controller reads and writes.
	clientHPA = autoscalingv2.HorizontalPodAutoscaler
	// shownHPA is an HPA in the version of responses.
	shownHPA = autoscalingv2.HorizontalPodAutoscaler
	// shownStatus is a status in the version of responses.
	shownStatus = autoscalingv2.HorizontalPodAutoscalerStatus
)

var clientVersion, shownVersion = autoscalingv2.SchemeGroupVersion, autoscalingv2.SchemeGroupVersion

// show converts the object to the version of responses.
func show(hpa *clientHPA) (*shownHPA, error) { return hpa, nil }
