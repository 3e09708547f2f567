//go:build k1.9 && !k1.12

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	customapi "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset_generated/clientset/typed/metrics/v1beta1"
)

type (
	customValue         = customapi.MetricValue
	customValueList     = customapi.MetricValueList
	podMetricsInterface = metricsclient.PodMetricsInterface
)

func nameMetric(value *customValue, metric string) { value.MetricName = metric }

func (m customMetrics) GetForObject(
	kind schema.GroupKind, name, metric string,
) (*customValue, error) {
	return m.readObjectMetric(kind, name, metric, labels.Everything())
}

// GetForObjects is called for pods only.
func (m customMetrics) GetForObjects(
	kind schema.GroupKind, selector labels.Selector, metric string,
) (*customValueList, error) {
	return m.readPodsMetric(kind, selector, metric, labels.Everything())
}

// newController ignores the informer of pods: see podInformer.
func newController(
	_ context.Context, client clientset, scales scale.ScalesGetter, mapper meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, _ podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		client.CoreV1(), scales, client.autoscaling(), mapper,
		podautoscaler.NewReplicaCalculator(metrics, client.CoreV1(), f.tolerance),
		hpas, f.syncPeriod, f.upscaleDelay, f.downscaleDelay,
	)
}
