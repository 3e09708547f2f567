//go:build k1.18

package virtual

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

func (h hpas) List(context.Context, metav1.ListOptions) (*clientHPAList, error) {
	return h.cluster.listHPAs(), nil
}

func (h hpas) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return h.cluster.hpas.table.watch(), nil
}

func (h hpas) UpdateStatus(
	_ context.Context, hpa *clientHPA, _ metav1.UpdateOptions,
) (*clientHPA, error) {
	return h.updateStatus(hpa)
}

func (p pods) List(_ context.Context, opts metav1.ListOptions) (*PodList, error) {
	return p.list(opts.LabelSelector)
}

func (p pods) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return p.table.watch(), nil
}

func (s namespacedScales) Get(
	_ context.Context, resource schema.GroupResource, name string, _ metav1.GetOptions,
) (*autoscalingv1.Scale, error) {
	return s.get(resource, name)
}

func (s namespacedScales) Update(
	_ context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale,
	_ metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	return s.update(resource, scale)
}

func (p namespacedPodMetrics) List(
	_ context.Context, opts metav1.ListOptions,
) (*PodMetricsList, error) {
	return p.cluster.readPodMetrics(p.namespace, opts.LabelSelector)
}
