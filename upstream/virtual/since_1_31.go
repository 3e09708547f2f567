//go:build k1.31

package virtual

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
)

// recordErrors replaces upstream's error handlers, because one of them sleeps relative to the wall
// clock.
func recordErrors() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, _ ...any) {
			if err != nil {
				msg = err.Error()
			}
			recordError(msg)
		},
	}
}

// leavesGoroutines reports whether a stopped controller leaves goroutines that wait forever.
const leavesGoroutines = false

type (
	queueKey          = string
	rateLimitingQueue = workqueue.TypedRateLimitingInterface[queueKey]
)
