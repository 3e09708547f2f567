//go:build k1.12

package virtual

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	return m.cluster.readObjectMetric(kind, name, metric, metricSelector)
}

// GetForObjects is called for pods only.
func (m customMetrics) GetForObjects(
	_ schema.GroupKind, selector labels.Selector, metric string, metricSelector labels.Selector,
) (*customValueList, error) {
	return m.cluster.readPodsMetric(selector, metric, metricSelector)
}
