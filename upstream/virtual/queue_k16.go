//go:build !k1.31

package virtual

import "k8s.io/client-go/util/workqueue"

type (
	queueKey          = any
	rateLimitingQueue = workqueue.RateLimitingInterface
)
