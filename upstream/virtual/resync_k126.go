//go:build k1.26

package virtual

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// AddEventHandlerWithResyncPeriod asks for a resync that comes late each time.
func (i hpaInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, period time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, lateResync(period))
}
