//go:build k1.13 && !k1.19

package virtual

import (
	"flag"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog"
)

// quiet discards the controller's log.
func quiet() {
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)
}

// The names of absent scales in the API server's errors, for reads and for writes, where they
// differ from the name of the resource: see ScaleREST of pkg/registry.
var unreadScales = map[string]schema.GroupResource{
	"deployments.apps":       {Group: "apps", Resource: "deployments/scale"},
	"replicasets.apps":       {Group: "apps", Resource: "replicasets/scale"},
	"replicationcontrollers": {Group: "autoscaling", Resource: "replicationcontrollers/scale"},
}

var unwrittenScales = unreadScales
