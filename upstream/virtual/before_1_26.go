//go:build !k1.26

package virtual

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// AddEventHandlerWithResyncPeriod requests resyncs that are slightly late.
func (i hpaInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, period time.Duration,
) {
	i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, lateResync(period))
}
