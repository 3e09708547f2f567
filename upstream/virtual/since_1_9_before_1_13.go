//go:build k1.9 && !k1.13

package virtual

import "k8s.io/apimachinery/pkg/runtime/schema"

// The names of absent scales in the API server's errors, for reads and for writes, where they
// differ from the name of the resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{
	"deployments.apps":       {Group: "extensions", Resource: "deployments/scale"},
	"replicasets.apps":       {Group: "extensions", Resource: "replicasets/scale"},
	"replicationcontrollers": {Group: "autoscaling", Resource: "replicationcontrollers/scale"},
}

var unwrittenScales = unreadScales
