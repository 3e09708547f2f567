//go:build !k1.7

package virtual

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metricsapi "k8s.io/heapster/metrics/apis/metrics/v1alpha1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// guessResource is the resource that the client derives from a kind.
var guessResource = meta.KindToResource

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = ResourceList
	usageName        = ResourceName
)

// newController passes no delays between scalings: they are constants in Kubernetes 1.6.
func newController(
	_ context.Context, client clientset, scales scalesGetter, _ meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, _ podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		eventsGetter{client}, scales, client.autoscaling(),
		podautoscaler.NewReplicaCalculator(metrics, client.CoreV1()), hpas, f.syncPeriod,
	)
}

// stable is the form in which stored objects are compared: their bytes. Kubernetes 1.6 stores
// annotations in the random order of a map, so that writes without a change are sometimes stored.
// Here they never are: annotations are compared in a fixed order.
func stable(hpa *storageHPA, _ []byte) ([]byte, error) {
	other := copyOf(hpa)
	other.Annotations = nil
	_, bytes, err := overTheWire(other)
	if err != nil {
		return nil, err
	}
	annotations, err := json.Marshal(hpa.Annotations)
	return append(bytes, annotations...), err
}
