//go:build k1.26

package virtual

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

// AddEventHandlerWithResyncPeriod requests slightly late resyncs; see lateResync.
func (i hpaInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, period time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, lateResync(period))
}

func run(ctx context.Context, controller *podautoscaler.HorizontalController, workers int) {
	controller.Run(ctx, workers)
}
