//go:build k1.31

package virtual

import "k8s.io/client-go/util/workqueue"

type (
	queueKey          = string
	rateLimitingQueue = workqueue.TypedRateLimitingInterface[queueKey]
)
