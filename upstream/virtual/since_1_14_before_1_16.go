//go:build k1.14 && !k1.16

package virtual

import "k8s.io/client-go/util/workqueue"

// The names that metrics had up to Kubernetes 1.13 are deprecated, and not observed.

func (queueMetrics) NewDeprecatedDepthMetric(string) workqueue.GaugeMetric { return unobserved{} }

func (queueMetrics) NewDeprecatedAddsMetric(string) workqueue.CounterMetric { return unobserved{} }

func (queueMetrics) NewDeprecatedLatencyMetric(string) workqueue.SummaryMetric {
	return unobserved{}
}

func (queueMetrics) NewDeprecatedWorkDurationMetric(string) workqueue.SummaryMetric {
	return unobserved{}
}

func (queueMetrics) NewDeprecatedUnfinishedWorkSecondsMetric(
	string,
) workqueue.SettableGaugeMetric {
	return unobserved{}
}

func (queueMetrics) NewDeprecatedLongestRunningProcessorMicrosecondsMetric(
	string,
) workqueue.SettableGaugeMetric {
	return unobserved{}
}

func (queueMetrics) NewDeprecatedRetriesMetric(string) workqueue.CounterMetric {
	return unobserved{}
}
