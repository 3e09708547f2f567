//go:build k1.31

package virtual

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// hearErrors replaces upstream's error handlers, of which one sleeps by the wall clock's start.
func hearErrors() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, _ ...any) {
			if err != nil {
				msg = err.Error()
			}
			heardError(msg)
		},
	}
}
