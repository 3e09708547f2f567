//go:build k1.8

package virtual

import metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = ResourceList
	usageName        = ResourceName
)
