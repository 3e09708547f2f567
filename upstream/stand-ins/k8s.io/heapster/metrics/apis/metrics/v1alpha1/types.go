// Package v1alpha1 has the types of Heapster's responses, with the API types of Kubernetes 1.6: the
// available version of Heapster uses older API types, from packages that 1.6 does not have.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/v1"
)

// PodMetrics is the usage of a pod's containers.
type PodMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Timestamp  metav1.Time        `json:"timestamp"`
	Window     metav1.Duration    `json:"window"`
	Containers []ContainerMetrics `json:"containers"`
}

// PodMetricsList is the response to a query.
type PodMetricsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodMetrics `json:"items"`
}

// ContainerMetrics is the usage of a container.
type ContainerMetrics struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}
