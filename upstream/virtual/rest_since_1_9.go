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

func (p podMetricses) PodMetricses(string) podMetricsInterface {
	return namespacedPodMetrics{cluster: p.cluster}
}

type namespacedPodMetrics struct {
	podMetricsInterface
	cluster *cluster
}

// customMetrics is the client of custom.metrics.k8s.io. The controller reads only metrics of its
// own namespace from its root, and there is only one namespace.
type customMetrics struct{ cluster *cluster }

func (m customMetrics) RootScopedMetrics() custom_metrics.MetricsInterface { return m }

func (m customMetrics) NamespacedMetrics(string) custom_metrics.MetricsInterface { return m }

func (c *cluster) readObjectMetric(
	kind schema.GroupKind, name, metric string, metricSelector labels.Selector,
) (*customValue, error) {
	c.awaitMetrics()
	e := entry{
		kind: objectMetric, metric: metric, metricSelector: metricSelector.String(),
		resource: kind.String(), name: name,
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.custom.objects[objectMetricKey{metric, kind, name}]
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

func (c *cluster) readPodsMetric(
	selector labels.Selector, metric string, metricSelector labels.Selector,
) (*customValueList, error) {
	c.awaitMetrics()
	e := entry{
		kind: podsMetric, metric: metric, metricSelector: metricSelector.String(),
		selector: selector.String(),
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.custom.pods[metric]
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
