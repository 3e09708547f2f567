package main

import (
	"time"

	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v2"
	"k8s.io/client-go/tools/cache"
)

// lateInformer makes each resync a nanosecond late, as docs/protocol.md requires. Otherwise a
// reconcile that a resync has queued would be due exactly at the next resync, and their order would
// be random.
type lateInformer struct {
	autoscalinginformers.HorizontalPodAutoscalerInformer
}

// Informer returns the informer.
func (i lateInformer) Informer() cache.SharedIndexInformer {
	return lateResyncs{i.HorizontalPodAutoscalerInformer.Informer()}
}

type lateResyncs struct{ cache.SharedIndexInformer }

// AddEventHandlerWithResyncPeriod adds a handler.
func (i lateResyncs) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, period time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	late := max(period, time.Second) + time.Nanosecond
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, late)
}
