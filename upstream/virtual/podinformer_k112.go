//go:build k1.12

package virtual

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

type podInformer struct{ cache.SharedIndexInformer }

func newPodInformer(client clientset, by cache.Indexers) podInformer {
	return podInformer{coreinformers.NewPodInformer(client, "", factoryResync, by)}
}

func (i podInformer) Informer() cache.SharedIndexInformer { return i }

func (i podInformer) Lister() corelisters.PodLister {
	return podLister{corelisters.NewPodLister(i.GetIndexer())}
}

// podLister lists pods by name. Upstream's cache lists them in the random order of a map, and the
// controller names the first one that has no request: by name is one of the orders that can be.
type podLister struct{ corelisters.PodLister }

type podNamespaceLister struct{ corelisters.PodNamespaceLister }

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{l.PodLister.Pods(namespace)}
}

func (l podNamespaceLister) List(selector labels.Selector) ([]*v1.Pod, error) {
	pods, err := l.PodNamespaceLister.List(selector)
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, err
}
