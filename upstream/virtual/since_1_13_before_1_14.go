//go:build k1.13 && !k1.14

package virtual

import "k8s.io/client-go/util/workqueue"

func (queueMetrics) NewLongestRunningProcessorMicrosecondsMetric(
	string,
) workqueue.SettableGaugeMetric {
	return unobserved{}
}
