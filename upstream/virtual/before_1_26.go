//go:build !k1.26

package virtual

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// AddEventHandlerWithResyncPeriod requests slightly late resyncs; see lateResync.
func (i hpaInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, period time.Duration,
) {
	i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, lateResync(period))
}
