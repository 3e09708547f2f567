//go:build !k1.31

package virtual

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// hearErrors replaces upstream's error handlers, of which one sleeps by the wall clock's start.
func hearErrors() {
	utilruntime.ErrorHandlers = []func(error){func(err error) { heardError(err.Error()) }}
}
