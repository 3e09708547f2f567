//go:build !k1.14

package virtual

import "k8s.io/client-go/util/workqueue"

// queueDurationUnit is the unit of the work queue's durations, in nanoseconds. They are whole.
const queueDurationUnit = 1e3

func (queueMetrics) NewLatencyMetric(string) workqueue.SummaryMetric { return latencyMetric{} }

func (queueMetrics) NewWorkDurationMetric(string) workqueue.SummaryMetric { return workMetric{} }
