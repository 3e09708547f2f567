//go:build !k1.30

package virtual

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// eventLevel is the level at which the controller has its events logged.
const eventLevel = 0

// hearEvents puts the logger in the place of the global one, which logs the controller's events.
func hearEvents(logger logr.Logger) { klog.SetLogger(logger) }
