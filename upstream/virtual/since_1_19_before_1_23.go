//go:build k1.19 && !k1.23

package virtual

import (
	"flag"
	"io"

	"k8s.io/klog/v2"
)

// quiet discards the controller's log.
func quiet() {
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(io.Discard)
}
