//go:build k1.7 && !k1.8

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	clientv1 "k8s.io/client-go/pkg/api/v1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1alpha1"
)

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = clientv1.ResourceList
	usageName        = clientv1.ResourceName
)

func newController(
	_ context.Context, client clientset, scales scalesGetter, _ meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, _ podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		eventsGetter{client}, scales, client.autoscaling(),
		podautoscaler.NewReplicaCalculator(metrics, client.CoreV1()),
		hpas, f.syncPeriod, f.upscaleDelay, f.downscaleDelay,
	)
}
