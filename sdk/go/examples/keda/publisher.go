package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/metrics/pkg/client/external_metrics"
	"kube-lockstep.dev/sdk/lockstep"
)

const (
	// queue is the name of the external metric of a scenario, and of the ConfigMap.
	queue = "queue"
	// publishing is the time between two updates of the ConfigMap.
	publishing = 15 * time.Second
)

// publisher is a second controller in the scenarios. It writes the length of the queue, an external
// metric of the scenario, to a ConfigMap, where the trigger kubernetes-resource of KEDA reads it: most
// other triggers read from a server outside of the cluster. If the metric is missing, so is the value.
type publisher struct {
	namespace  string
	metrics    external_metrics.MetricsInterface
	configMaps typedcorev1.ConfigMapInterface
}

func newPublisher(run *lockstep.Run) (*publisher, error) {
	cfg := run.ConfigFor("publisher")
	metrics, err := external_metrics.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &publisher{
		run.Namespace, metrics.NamespacedMetrics(run.Namespace), client.CoreV1().ConfigMaps(run.Namespace),
	}, nil
}

// run publishes until the context ends.
func (p *publisher) run(ctx context.Context) {
	ticker := time.NewTicker(publishing)
	defer ticker.Stop()
	for {
		if _, err := p.configMaps.Apply(ctx, p.state(), metav1.ApplyOptions{
			FieldManager: "publisher",
		}); err != nil && ctx.Err() == nil {
			lockstep.Logger().Error(err, "the queue was not published")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// state is the ConfigMap with the current length.
func (p *publisher) state() *applycorev1.ConfigMapApplyConfiguration {
	made := applycorev1.ConfigMap(queue, p.namespace)
	list, err := p.metrics.List(queue, labels.Everything())
	if err == nil && len(list.Items) > 0 {
		made.WithData(map[string]string{"length": list.Items[0].Value.AsDec().String()})
	}
	return made
}
