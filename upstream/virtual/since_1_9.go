//go:build k1.9

package virtual

import (
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// scaleGroup is the API group of scales.
const scaleGroup = "autoscaling"

// scaleVersion is the version of the scales that the controller writes.
var scaleVersion = autoscalingv1.SchemeGroupVersion

// scales serves the scale subresource of every kind that has one.
type scales struct{ cluster *cluster }

func (s scales) Scales(namespace string) scaleclient.ScaleInterface {
	return namespacedScales{cluster: s.cluster, namespace: namespace}
}

type namespacedScales struct {
	scaleclient.ScaleInterface
	cluster   *cluster
	namespace string
}

// scaleRow is the scale of an object.
func (o *namespaced) scaleRow(resource schema.GroupResource, name string) (*scaleRow, error) {
	if o.withoutScale[resource] {
		return nil, noSuchPath()
	}
	if row, ok := o.scales[scaleKey{resource, name}]; ok {
		return row, nil
	}
	return nil, errMissing
}

func (s namespacedScales) get(
	resource schema.GroupResource, name string,
) (*autoscalingv1.Scale, error) {
	row, err := s.cluster.readScale(s.namespace, resource, name)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.namespace, ResourceVersion: row.resourceVersion(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: row.replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: row.statusReplicas, Selector: row.selector},
	}, nil
}

func (s namespacedScales) update(
	resource schema.GroupResource, scale *autoscalingv1.Scale,
) (*autoscalingv1.Scale, error) {
	return scale, s.cluster.writeScale(resource, entry{
		namespace: s.namespace, name: scale.Name, replicas: scale.Spec.Replicas,
		statusReplicas: scale.Status.Replicas, selector: scale.Status.Selector,
	}, scale.ResourceVersion)
}

// The types of the API server and their serializers.
var apiScheme, apiCodecs = legacyscheme.Scheme, legacyscheme.Codecs

func newMapper(targets []target) meta.RESTMapper {
	var versions []schema.GroupVersion
	for _, t := range targets {
		version := schema.GroupVersion{Group: t.group, Version: t.version}
		// The mapper would try a duplicate twice.
		if !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	mapper := newDefaultMapper(versions)
	for _, t := range targets {
		version := schema.GroupVersion{Group: t.group, Version: t.version}
		plural := version.WithResource(t.resource)
		mapper.AddSpecific(version.WithKind(t.kind), plural, plural, meta.RESTScopeNamespace)
	}
	// Like the discovery mapper of the kube-controller-manager, whose errors for unknown kinds differ
	// from other mappers.
	return meta.MultiRESTMapper{mapper}
}
