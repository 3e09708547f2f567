// Package v1alpha1 has the types of the client of the resource metrics API, which Kubernetes 1.6
// requires, but does not use by default.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/pkg/api/v1"
)

// PodMetricsesGetter is a client of the resource metrics API.
type PodMetricsesGetter interface {
	PodMetricses(namespace string) PodMetricsInterface
}

// PodMetricsInterface is a client of the metrics of the pods of a namespace.
type PodMetricsInterface interface {
	List(opts metav1.ListOptions) (*PodMetricsList, error)
}

// PodMetricsList is the response to a query.
type PodMetricsList struct{ Items []PodMetrics }

// PodMetrics is the usage of a pod's containers.
type PodMetrics struct {
	metav1.ObjectMeta

	Timestamp  metav1.Time
	Containers []ContainerMetrics
}

// ContainerMetrics is the usage of a container.
type ContainerMetrics struct {
	Name  string
	Usage v1.ResourceList
}
