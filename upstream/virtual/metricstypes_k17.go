//go:build k1.7 && !k1.8

package virtual

import (
	clientv1 "k8s.io/client-go/pkg/api/v1"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1alpha1"
)

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = clientv1.ResourceList
	usageName        = clientv1.ResourceName
)
