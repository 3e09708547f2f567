//go:build k1.27 && !k1.33

package virtual

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The packages of the API server's handlers import upstream's provider of metrics for work queues.
func init() { readQueue = readPrometheus }

// queueCollectors are the collectors of the metrics of work queues. The registry is the process's.
var queueCollectors []prometheus.Collector

// queueCollected holds one collector's metrics. It is made outside of bubbles.
var queueCollected = make(chan prometheus.Metric, manySeries)

// readPrometheus returns the totals of the controller's queue. Only that queue has a name.
func readPrometheus() (counts queueCounts) {
	if queueCollectors == nil {
		queueCollectors = collectorsOf(queueSubsystem)
	}
	for _, collector := range queueCollectors {
		collector.Collect(queueCollected)
		for len(queueCollected) > 0 {
			metric := <-queueCollected
			var out dto.Metric
			if err := metric.Write(&out); err != nil {
				panic(err)
			}
			switch nameOf(metric, "") {
			case addsSeries:
				counts.adds = int64(out.Counter.GetValue())
			case retriesSeries:
				counts.retries = int64(out.Counter.GetValue())
			case strings.TrimSuffix(latencySeries, "_sum"):
				counts.latency = int64(math.Round(out.Histogram.GetSampleSum() * 1e9))
			case strings.TrimSuffix(workSeries, "_sum"):
				counts.worked = int64(math.Round(out.Histogram.GetSampleSum() * 1e9))
			}
		}
	}
	return counts
}
