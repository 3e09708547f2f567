//go:build !k1.31

package virtual

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
)

// recordErrors replaces upstream's error handlers, because one of them sleeps relative to the wall
// clock.
func recordErrors() {
	utilruntime.ErrorHandlers = []func(error){func(err error) { recordError(err.Error()) }}
}

// leavesGoroutines reports whether a stopped controller leaves goroutines that wait forever.
const leavesGoroutines = true

type (
	queueKey          = any
	rateLimitingQueue = workqueue.RateLimitingInterface
)
