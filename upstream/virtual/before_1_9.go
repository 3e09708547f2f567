//go:build !k1.9

package virtual

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/kubernetes/pkg/api"
)

// The names of absent scales in the API server's errors, for reads and for writes, where they
// differ from the name of the resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{
	"deployments.extensions":            {Group: "extensions", Resource: "deployments/scale"},
	"replicasets.extensions":            {Group: "extensions", Resource: "replicasets/scale"},
	"replicationcontrollers.extensions": {Group: "extensions", Resource: "replicationcontrollers/scale"},
}

var unwrittenScales = unreadScales

// outdatedScale is the API server's error for a write of a scale that was read before the object
// changed. The handler of ReplicationControllers turns every error of its storage into a conflict.
func outdatedScale(resource schema.GroupResource, name string) error {
	if resource.Resource != "replicationcontrollers" {
		return apierrors.NewConflict(resource, name, errOutdated)
	}
	stored := schema.GroupResource{Resource: resource.Resource}
	resource.Resource += "/scale"
	return apierrors.NewConflict(resource, name, apierrors.NewConflict(stored, name, errOutdated))
}

// scaleGroup is the API group of scales.
const scaleGroup = "extensions"

// scaleVersion is the version of the scales that the controller writes.
var scaleVersion = schema.GroupVersion{Group: scaleGroup, Version: "v1beta1"}

// scales serves the scale subresources of the kinds in the API group extensions: up to Kubernetes
// 1.8 the controller requests no others, whatever the group of the target.
type scales struct{ cluster *cluster }

func (s scales) Scales(namespace string) scaleInterface {
	return extensionsScales{cluster: s.cluster, namespace: namespace}
}

type extensionsScales struct {
	scaleInterface
	cluster   *cluster
	namespace string
}

func (s extensionsScales) Get(kind, name string) (*extensionsScale, error) {
	row, err := s.cluster.readScale(s.namespace, extensionsResource(kind), name)
	if err != nil {
		return nil, err
	}
	scale := &extensionsScale{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.namespace, ResourceVersion: row.resourceVersion(),
		},
	}
	scale.Spec.Replicas = row.replicas
	scale.Status.Replicas = row.statusReplicas
	scale.Status.Selector = matchLabels(row.selector)
	scale.Status.TargetSelector = row.selector
	return scale, nil
}

func (s extensionsScales) Update(kind string, scale *extensionsScale) (*extensionsScale, error) {
	return scale, s.cluster.writeScale(extensionsResource(kind), entry{
		namespace: s.namespace, name: scale.Name, replicas: scale.Spec.Replicas,
		statusReplicas: scale.Status.Replicas, selector: scale.Status.TargetSelector,
	}, scale.ResourceVersion)
}

// extensionsResource is the resource that the client derives from a kind.
func extensionsResource(kind string) schema.GroupResource {
	guess, _ := guessResource(schema.GroupVersionKind{Kind: kind})
	return schema.GroupResource{Group: scaleGroup, Resource: guess.Resource}
}

// scaleRow is the scale of an object. Deployments and ReplicaSets are the same objects in apps and
// in extensions; for ReplicationControllers of the core group, extensions serves the scale.
func (o *namespaced) scaleRow(resource schema.GroupResource, name string) (*scaleRow, error) {
	switch resource.Resource {
	case "deployments", "replicasets", "replicationcontrollers":
	default:
		return nil, noSuchPath()
	}
	for _, group := range []string{scaleGroup, "apps", ""} {
		same := schema.GroupResource{Group: group, Resource: resource.Resource}
		if row, ok := o.scales[scaleKey{same, name}]; ok {
			return row, nil
		}
	}
	return nil, errMissing
}

// matchLabels are the labels of a selector that has only equality requirements. The API server also
// returns such a selector as a map.
func matchLabels(text string) map[string]string {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil
	}
	requirements, _ := selector.Requirements()
	made := map[string]string{}
	for i := range requirements {
		r := &requirements[i]
		_, twice := made[r.Key()]
		if r.Operator() != selection.Equals || twice {
			return nil
		}
		made[r.Key()], _ = r.Values().PopAny()
	}
	return made
}

// The types of the API server and their serializers.
var apiScheme, apiCodecs = api.Scheme, api.Codecs

// newMapper is empty: up to Kubernetes 1.8, the controller requests the scale of a kind regardless
// of its group.
func newMapper([]target) meta.RESTMapper { return nil }
