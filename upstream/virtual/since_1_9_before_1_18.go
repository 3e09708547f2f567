//go:build k1.9 && !k1.18

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s namespacedScales) Get(
	resource schema.GroupResource, name string,
) (*autoscalingv1.Scale, error) {
	return s.get(resource, name)
}

func (s namespacedScales) Update(
	resource schema.GroupResource, scale *autoscalingv1.Scale,
) (*autoscalingv1.Scale, error) {
	return s.update(resource, scale)
}

func (p namespacedPodMetrics) List(
	opts metav1.ListOptions,
) (*PodMetricsList, error) {
	return p.cluster.readPodMetrics(p.namespace, opts.LabelSelector)
}
