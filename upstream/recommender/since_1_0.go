//go:build vpa1.0

package recommender

import "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/metrics"

func metricsClient(c *cluster, namespace string) metrics.MetricsClient {
	return metrics.NewMetricsClient(c, namespace, "default-metrics-client")
}
