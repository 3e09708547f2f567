//go:build k1.8 && !k1.9

package virtual

import (
	"context"

	extensions "k8s.io/api/extensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	scaleclient "k8s.io/client-go/kubernetes/typed/extensions/v1beta1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

type (
	extensionsScale = extensions.Scale
	scaleInterface  = scaleclient.ScaleInterface
	scalesGetter    = scaleclient.ScalesGetter
)

func newController(
	_ context.Context, client clientset, scales scalesGetter, _ meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, _ podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		client.CoreV1(), scales, client.autoscaling(),
		podautoscaler.NewReplicaCalculator(metrics, client.CoreV1()),
		hpas, f.syncPeriod, f.upscaleDelay, f.downscaleDelay,
	)
}
