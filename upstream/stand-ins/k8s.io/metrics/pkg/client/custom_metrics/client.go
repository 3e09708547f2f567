// Package custom_metrics has types of clients that Kubernetes 1.6 requires, but does not use here.
package custom_metrics

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1alpha1"
)

// CustomMetricsClient is a client of the custom metrics API.
type CustomMetricsClient interface {
	RootScopedMetrics() MetricsInterface
	NamespacedMetrics(namespace string) MetricsInterface
}

// MetricsInterface is a client of the metrics of one namespace, or of root-scoped objects.
type MetricsInterface interface {
	GetForObject(kind schema.GroupKind, name, metric string) (*v1alpha1.MetricValue, error)
	GetForObjects(
		kind schema.GroupKind, selector labels.Selector, metric string,
	) (*v1alpha1.MetricValueList, error)
}
