//go:build !vpa0.12

package recommender

import "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/metrics"

func metricsClient(c *cluster, namespace string) metrics.MetricsClient {
	return metrics.NewMetricsClient(podMetricses{cluster: c}, namespace)
}
