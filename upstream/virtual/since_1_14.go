//go:build k1.14

package virtual

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/workqueue"
)

// mutableGates are upstream's feature gates.
var mutableGates = utilfeature.DefaultMutableFeatureGate

// queueDurationUnit is the unit of the work queue's durations, in nanoseconds.
const queueDurationUnit = 1e9

func (queueMetrics) NewLatencyMetric(string) workqueue.HistogramMetric { return latencyMetric{} }

func (queueMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return workMetric{} }

func (queueMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unobserved{}
}
