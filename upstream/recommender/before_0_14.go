//go:build !vpa0.14

package recommender

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metrics_api "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// podMetricses is a client of the resource metrics API.
type podMetricses struct {
	metrics_api.PodMetricsInterface
	cluster   *cluster
	namespace string
}

func (p podMetricses) PodMetricses(namespace string) metrics_api.PodMetricsInterface {
	return podMetricses{cluster: p.cluster, namespace: namespace}
}

func (p podMetricses) List(ctx context.Context, options metav1.ListOptions) (*v1beta1.PodMetricsList, error) {
	return p.cluster.List(ctx, p.namespace, options)
}
