//go:build k1.23 && !k1.30

package virtual

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// quiet discards the controller's log.
func quiet() { klog.SetLogger(logr.Discard()) }
