//go:build k1.10

package virtual

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	externalapi "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// externalValue is one series of an external metric.
type externalValue = externalapi.ExternalMetricValue

func newMetricsClient(c *cluster) metrics.MetricsClient {
	return metrics.NewRESTMetricsClient(podMetricses{c}, customMetrics{cluster: c}, externalMetrics{cluster: c})
}

// externalMetrics is the client of external.metrics.k8s.io.
type externalMetrics struct {
	cluster   *cluster
	namespace string
}

func (m externalMetrics) NamespacedMetrics(namespace string) external_metrics.MetricsInterface {
	return externalMetrics{cluster: m.cluster, namespace: namespace}
}

func (m externalMetrics) List(
	metric string, metricSelector labels.Selector,
) (*externalapi.ExternalMetricValueList, error) {
	c := m.cluster
	c.awaitMetrics()
	e := entry{
		kind: externalMetric, namespace: m.namespace, metric: metric,
		metricSelector: metricSelector.String(),
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.in(m.namespace).custom.externals[metric]
	if !ok {
		e.err = unknownMetric(metric, "")
		return nil, e.err
	}
	items, err := answer.list(metricSelector)
	if err != nil {
		e.err = err
		return nil, err
	}
	e.replicas = int32(len(items))
	return &externalapi.ExternalMetricValueList{Items: items}, nil
}

// setExternalMetric applies a change of the response of external.metrics.k8s.io for a metric.
func (c *namespaced) setExternalMetric(change *externalMetricChange) error {
	answer := &seriesAnswer[externalValue]{err: change.err.statusError()}
	for i := range change.series {
		s := &change.series[i]
		quantity, err := parseQuantity(s.value)
		if err != nil {
			return fmt.Errorf("externalMetric: %s: %w", change.metric, err)
		}
		answer.add(s.labels, externalValue{
			MetricName:   change.metric,
			MetricLabels: s.labels,
			Timestamp:    c.time(s.timestamp),
			Value:        quantity,
		})
	}
	c.custom.externals[change.metric] = answer
	return nil
}
