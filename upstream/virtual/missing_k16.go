//go:build !k1.9

package virtual

import "k8s.io/apimachinery/pkg/runtime/schema"

// What the API server calls a scale that is not there, when it is read and when it is written,
// where that is not the name of its resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{
	"deployments.extensions":            {Group: "extensions", Resource: "deployments/scale"},
	"replicasets.extensions":            {Group: "extensions", Resource: "replicasets/scale"},
	"replicationcontrollers.extensions": {Group: "extensions", Resource: "replicationcontrollers/scale"},
}

var unwrittenScales = unreadScales
