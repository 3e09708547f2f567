//go:build k1.8

package virtual

import "k8s.io/client-go/util/retry"

// retryDuration is the wait between attempts to update the scale.
var retryDuration = retry.DefaultRetry.Duration

// The waits between attempts to update the scale are drawn with a jitter of a tenth. A length that
// can be drawn is taken instead, so that times can be predicted.
func init() { retry.DefaultRetry.Jitter = 0 }

// retryWait says who waits between attempts: upstream, or, so that others can have their turns
// meanwhile, the client that is asked to update the scale again.
func retryWait(byTurns bool) {
	retry.DefaultRetry.Duration = retryDuration
	if byTurns {
		retry.DefaultRetry.Duration = 0
	}
}
