package lockstep

import (
	"sync"
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/util/workqueue"
)

// queueProvider makes the metrics of new work queues. client-go lets only the first caller replace
// it, which may be a package of the controller.
//
//go:linkname queueProvider k8s.io/client-go/util/workqueue.globalMetricsProvider
var queueProvider workqueue.MetricsProvider

// watchQueues makes all queues that are created afterwards report when workers take keys. It is
// called only if a scenario requires it: a queue with metrics updates some of them twice per
// second.
var watchQueues = sync.OnceFunc(func() {
	if queueProvider != nil {
		queueProvider = queueMetrics{queueProvider}
	}
})

// queueMetrics reports the turns of workers. As the metrics of a work queue, it is called with the
// lock of the queue.
type queueMetrics struct{ workqueue.MetricsProvider }

// observer is a histogram that also calls a function.
type observer struct {
	workqueue.HistogramMetric
	call func(*turns)
}

// Observe observes a value.
func (o observer) Observe(value float64) {
	o.HistogramMetric.Observe(value)
	if t := presentTurns.Load(); t != nil {
		o.call(t)
	}
}

// NewLatencyMetric returns the metric that is observed when a worker takes a key.
func (m queueMetrics) NewLatencyMetric(queue string) workqueue.HistogramMetric {
	return observer{m.MetricsProvider.NewLatencyMetric(queue), (*turns).took}
}

// NewWorkDurationMetric returns the metric that is observed when a worker marks a key as done.
func (m queueMetrics) NewWorkDurationMetric(queue string) workqueue.HistogramMetric {
	return observer{m.MetricsProvider.NewWorkDurationMetric(queue), (*turns).done}
}
