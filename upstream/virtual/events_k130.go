//go:build k1.30

package virtual

import "github.com/go-logr/logr"

// eventLevel is the level at which the controller has its events logged.
const eventLevel = 3

// hearEvents does nothing: the controller takes its logger from its context.
func hearEvents(logr.Logger) {}
