//go:build k1.13 && !k1.19

package virtual

import (
	"flag"
	"io"

	"k8s.io/klog"
)

// quiet has the controller's log dropped.
func quiet() {
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)
}
