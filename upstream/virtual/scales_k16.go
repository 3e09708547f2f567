//go:build !k1.9

package virtual

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
)

// scaleGroup is the API group of scales.
const scaleGroup = "extensions"

// scales is the scale subresource of what the API group extensions has of kinds: up to Kubernetes
// 1.8 the controller asks for no other, whatever the group of a target.
type scales struct{ cluster *cluster }

func (s scales) Scales(string) scaleInterface { return extensionsScales{cluster: s.cluster} }

type extensionsScales struct {
	scaleInterface
	cluster *cluster
}

func (s extensionsScales) Get(kind, name string) (*extensionsScale, error) {
	row, err := s.cluster.readScale(extensionsResource(kind), name)
	if err != nil {
		return nil, err
	}
	scale := &extensionsScale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.cluster.namespace},
	}
	scale.Spec.Replicas = row.replicas
	scale.Status.Replicas = row.statusReplicas
	scale.Status.Selector = matchLabels(row.selector)
	scale.Status.TargetSelector = row.selector
	return scale, nil
}

func (s extensionsScales) Update(kind string, scale *extensionsScale) (*extensionsScale, error) {
	resource := extensionsResource(kind)
	return scale, s.cluster.writeScale(resource, scale.Name, scale.Spec.Replicas)
}

// extensionsResource is the resource that the client makes of a kind.
func extensionsResource(kind string) schema.GroupResource {
	guess, _ := guessResource(schema.GroupVersionKind{Kind: kind})
	return schema.GroupResource{Group: scaleGroup, Resource: guess.Resource}
}

// scaleRow is the scale of an object. Deployments and replica sets are the same objects in apps and
// in extensions; and of the core's replication controllers, extensions serves the scale.
func (c *cluster) scaleRow(resource schema.GroupResource, name string) (*scaleRow, error) {
	switch resource.Resource {
	case "deployments", "replicasets", "replicationcontrollers":
	default:
		return nil, noSuchPath()
	}
	for _, group := range []string{scaleGroup, "apps", ""} {
		same := schema.GroupResource{Group: group, Resource: resource.Resource}
		if row, ok := c.scales[scaleKey{same, name}]; ok {
			return row, nil
		}
	}
	return nil, errMissing
}

// matchLabels are the labels of a selector that asks for nothing but labels with their values. The
// API server gives such a selector as a map, too.
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
