// Package v1alpha1 has the types that the client of the custom metrics API in Kubernetes 1.6
// requires. That client is compiled, but not used. The revision of k8s.io/metrics that 1.6 was built
// with is no longer available.
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/pkg/api/v1"
)

// MetricValue is a value of a metric of an object.
type MetricValue struct {
	DescribedObject v1.ObjectReference
	MetricName      string
	Timestamp       metav1.Time
	Value           resource.Quantity
}

// MetricValueList is the response to a query.
type MetricValueList struct{ Items []MetricValue }
