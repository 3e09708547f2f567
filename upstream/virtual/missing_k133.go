//go:build k1.33

package virtual

import "k8s.io/apimachinery/pkg/runtime/schema"

// What the API server calls a scale that is not there, when it is read and when it is written,
// where that is not the name of its resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{}

var unwrittenScales = map[string]schema.GroupResource{
	"deployments.apps":       {Group: "apps", Resource: "deployments/scale"},
	"replicasets.apps":       {Group: "apps", Resource: "replicasets/scale"},
	"statefulsets.apps":      {Group: "apps", Resource: "statefulsets/scale"},
	"replicationcontrollers": {Group: "", Resource: "replicationcontrollers/scale"},
}
