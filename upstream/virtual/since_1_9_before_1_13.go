//go:build k1.9 && !k1.13

package virtual

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of absent scales in the API server's errors, for reads and for writes, where they
// differ from the name of the resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{
	"deployments.apps":       {Group: "extensions", Resource: "deployments/scale"},
	"replicasets.apps":       {Group: "extensions", Resource: "replicasets/scale"},
	"replicationcontrollers": {Group: "autoscaling", Resource: "replicationcontrollers/scale"},
}

var unwrittenScales = unreadScales

// outdatedScale is the API server's error for a write of a scale that was read before the object
// changed. It is the error of the storage, which has Deployments and ReplicaSets in extensions.
func outdatedScale(resource schema.GroupResource, name string) error {
	if r := resource.String(); r == "deployments.apps" || r == "replicasets.apps" {
		resource.Group = "extensions"
	}
	return apierrors.NewConflict(resource, name, errOutdated)
}
