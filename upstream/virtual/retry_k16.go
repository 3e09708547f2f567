//go:build !k1.8

package virtual

import "time"

// retryDuration is none: up to Kubernetes 1.7 client-go has no attempts to update again.
const retryDuration time.Duration = 0

// retryWait does nothing: nobody waits.
func retryWait(bool) {}
