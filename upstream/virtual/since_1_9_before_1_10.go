//go:build k1.9 && !k1.10

package virtual

import "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

// externalValue is empty: up to Kubernetes 1.9 there is no external.metrics.k8s.io.
type externalValue struct{}

func newMetricsClient(c *cluster) metrics.MetricsClient {
	return metrics.NewRESTMetricsClient(podMetricses{c}, customMetrics{cluster: c})
}

// setExternalMetric does nothing: the controller sends no such queries.
func (*namespaced) setExternalMetric(*externalMetricChange) error { return nil }
