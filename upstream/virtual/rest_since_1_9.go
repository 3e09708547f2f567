//go:build k1.9

package virtual

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/client/custom_metrics"
)

// podMetricses is the client of metrics.k8s.io.
type podMetricses struct{ cluster *cluster }

func (p podMetricses) PodMetricses(namespace string) podMetricsInterface {
	return namespacedPodMetrics{cluster: p.cluster, namespace: namespace}
}

type namespacedPodMetrics struct {
	podMetricsInterface
	cluster   *cluster
	namespace string
}

// customMetrics is the client of custom.metrics.k8s.io in a namespace; without one, of metrics of
// objects that are in no namespace.
type customMetrics struct {
	cluster   *cluster
	namespace string
}

func (m customMetrics) RootScopedMetrics() custom_metrics.MetricsInterface { return m }

func (m customMetrics) NamespacedMetrics(namespace string) custom_metrics.MetricsInterface {
	return customMetrics{cluster: m.cluster, namespace: namespace}
}

func (m customMetrics) readObjectMetric(
	kind schema.GroupKind, name, metric string, metricSelector labels.Selector,
) (*customValue, error) {
	c := m.cluster
	c.awaitMetrics()
	e := entry{
		kind: objectMetric, namespace: m.namespace, metric: metric, metricSelector: metricSelector.String(),
		resource: kind.String(), name: name,
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.in(m.namespace).custom.objects[objectMetricKey{metric, kind, name}]
	if !ok {
		e.err = unknownMetric(metric, " for "+kind.String()+" "+name)
		return nil, e.err
	}
	items, err := answer.list(metricSelector)
	if err == nil && len(items) != 1 {
		// The text of the real client's error.
		err = fmt.Errorf("the custom metrics API server returned %d results when we asked for "+
			"exactly one", len(items))
	}
	if err != nil {
		e.err = err
		return nil, err
	}
	e.value = items[0].Value.String()
	return &items[0], nil
}

func (m customMetrics) readPodsMetric(
	kind schema.GroupKind, selector labels.Selector, metric string, metricSelector labels.Selector,
) (*customValueList, error) {
	c := m.cluster
	c.awaitMetrics()
	e := entry{
		kind: podsMetric, namespace: m.namespace, metric: metric, metricSelector: metricSelector.String(),
		selector: selector.String(), resource: kind.String(),
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.in(m.namespace).custom.pods[metric]
	if !ok {
		e.err = unknownMetric(metric, " for pods")
		return nil, e.err
	}
	items, err := answer.list(selector, metricSelector)
	if err != nil {
		e.err = err
		return nil, err
	}
	e.replicas = int32(len(items))
	return &customValueList{Items: items}, nil
}
