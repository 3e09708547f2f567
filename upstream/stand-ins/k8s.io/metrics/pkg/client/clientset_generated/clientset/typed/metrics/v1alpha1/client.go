// Package v1alpha1 has the types of the client of the resource metrics API that Kubernetes 1.6
// names, but does not use unless it is told to.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/pkg/api/v1"
)

// PodMetricsesGetter is a client of the resource metrics API.
type PodMetricsesGetter interface {
	PodMetricses(namespace string) PodMetricsInterface
}

// PodMetricsInterface is a client of what the pods of a namespace use.
type PodMetricsInterface interface {
	List(opts metav1.ListOptions) (*PodMetricsList, error)
}

// PodMetricsList is the answer to a query.
type PodMetricsList struct{ Items []PodMetrics }

// PodMetrics is what the containers of a pod use.
type PodMetrics struct {
	metav1.ObjectMeta

	Timestamp  metav1.Time
	Containers []ContainerMetrics
}

// ContainerMetrics is what a container uses.
type ContainerMetrics struct {
	Name  string
	Usage v1.ResourceList
}
