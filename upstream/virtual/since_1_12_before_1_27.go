//go:build k1.12 && !k1.27

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

func newController(
	_ context.Context, client clientset, scales scale.ScalesGetter, mapper meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, pods podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		client.CoreV1(), scales, client.autoscaling(), mapper, metrics,
		hpas, pods, f.syncPeriod, f.downscaleStabilization, f.tolerance,
		f.cpuInitializationPeriod, f.initialReadinessDelay,
	)
}
