//go:build !k1.18

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func (h hpas) List(metav1.ListOptions) (*clientHPAList, error) {
	return h.cluster.listHPAs(), nil
}

func (h hpas) Watch(metav1.ListOptions) (watch.Interface, error) {
	return h.cluster.hpas.table.watch(), nil
}

func (h hpas) UpdateStatus(
	hpa *clientHPA,
) (*clientHPA, error) {
	return h.cluster.updateHPAStatus(hpa)
}

func (p pods) List(opts metav1.ListOptions) (*corev1.PodList, error) {
	return p.list(opts.LabelSelector)
}

func (p pods) Watch(metav1.ListOptions) (watch.Interface, error) {
	return p.table.watch(), nil
}

func (s namespacedScales) Get(
	resource schema.GroupResource, name string,
) (*autoscalingv1.Scale, error) {
	return s.cluster.readScale(resource, name)
}

func (s namespacedScales) Update(
	resource schema.GroupResource, scale *autoscalingv1.Scale,
) (*autoscalingv1.Scale, error) {
	return s.cluster.writeScale(resource, scale)
}

func (p namespacedPodMetrics) List(
	opts metav1.ListOptions,
) (*metricsapi.PodMetricsList, error) {
	return p.cluster.readPodMetrics(opts.LabelSelector)
}
