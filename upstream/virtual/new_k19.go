//go:build k1.9 && !k1.12

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// newController has no use for an informer of pods: see podInformer.
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
