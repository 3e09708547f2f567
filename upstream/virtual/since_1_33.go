//go:build k1.33

package virtual

import "k8s.io/apimachinery/pkg/runtime/schema"

// The names of absent scales in the API server's errors, for reads and for writes, where they
// differ from the name of the resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{}

var unwrittenScales = map[string]schema.GroupResource{
	"deployments.apps":       {Group: "apps", Resource: "deployments/scale"},
	"replicasets.apps":       {Group: "apps", Resource: "replicasets/scale"},
	"statefulsets.apps":      {Group: "apps", Resource: "statefulsets/scale"},
	"replicationcontrollers": {Group: "", Resource: "replicationcontrollers/scale"},
}
