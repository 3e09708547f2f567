//go:build !k1.7

package virtual

import metricsapi "k8s.io/heapster/metrics/apis/metrics/v1alpha1"

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = ResourceList
	usageName        = ResourceName
)
