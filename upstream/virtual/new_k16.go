//go:build !k1.7

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// newController gives no delays between scalings: in Kubernetes 1.6 they are fixed.
func newController(
	_ context.Context, client clientset, scales scalesGetter, _ meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, _ podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		eventsGetter{client.stopped}, scales, client.autoscaling(),
		podautoscaler.NewReplicaCalculator(metrics, client.CoreV1()), hpas, f.syncPeriod,
	)
}
