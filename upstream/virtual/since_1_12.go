//go:build k1.12

package virtual

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	customapi "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

type (
	customValue         = customapi.MetricValue
	customValueList     = customapi.MetricValueList
	podMetricsInterface = metricsclient.PodMetricsInterface
)

func nameMetric(value *customValue, metric string) { value.Metric.Name = metric }

func (m customMetrics) GetForObject(
	kind schema.GroupKind, name, metric string, metricSelector labels.Selector,
) (*customValue, error) {
	return m.readObjectMetric(kind, name, metric, metricSelector)
}

// GetForObjects is called for pods only.
func (m customMetrics) GetForObjects(
	kind schema.GroupKind, selector labels.Selector, metric string, metricSelector labels.Selector,
) (*customValueList, error) {
	return m.readPodsMetric(kind, selector, metric, metricSelector)
}

type podInformer struct{ cache.SharedIndexInformer }

func newPodInformer(client clientset, by cache.Indexers) podInformer {
	return podInformer{coreinformers.NewPodInformer(client, "", factoryResync, by)}
}

func (i podInformer) Informer() cache.SharedIndexInformer { return i }

func (i podInformer) Lister() corelisters.PodLister {
	return podLister{corelisters.NewPodLister(i.GetIndexer())}
}

// podLister lists pods sorted by name. Upstream's cache lists them in the random order of a map, and
// the controller's error names the first pod without a request. The order by name is one of the
// possible orders.
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
