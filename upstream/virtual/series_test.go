//go:build k1.37

package virtual

import (
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// increases are the increases of counters in a log, by series; gauges depend on the release.
func increases(log []entry) []string {
	var all []string
	for _, e := range log {
		if e.kind == metricIncrease {
			all = append(all, e.metric)
		}
	}
	return all
}

func TestEachReconcileChangesTheMetricsOfTheController(t *testing.T) {
	const computations, reconciliations = "metric_computation_total", "reconciliations_total"
	up := []string{
		computations + "{action=scale_up,error=none,metric_type=Resource}",
		reconciliations + "{action=scale_up,error=none}",
	}
	// The series begin anew in each scenario, and when the controller restarts.
	for range 2 {
		scenario(t, 3, "1", func(s *session) {
			if got := increases(s.observed.entries); !slices.Equal(got, up) {
				t.Errorf("got %v", got)
			}
			fault := &apiError{code: 503, reason: "ServiceUnavailable", message: "no"}
			_, log := mustStepWithSeries(t, s, 15*second, change{faults: &faults{listPodMetrics: fault}})
			failed := []string{
				computations + "{action=none,error=internal,metric_type=Resource}",
				reconciliations + "{action=none,error=internal}",
			}
			if got := increases(log); !slices.Equal(got, failed) {
				t.Errorf("got %v", got)
			}
			mustStep(t, s, 16*second, change{restart: true})
			for _, one := range ownSeries.known {
				if one.now > 1 {
					t.Errorf("%s is %v after a restart", one.series, one.now)
				}
			}
		})
	}
}

// Each increase of a counter is one observation of the histogram with the same labels.
func TestHistogramsCountLikeCounters(t *testing.T) {
	scenario(t, 3, "500m", func(s *session) {
		_, log := mustStepWithSeries(t, s, 20*15*second)
		for _, e := range log {
			if strings.Contains(e.metric, "_count") {
				t.Errorf("%s differs by %v", e.metric, e.amount)
			}
		}
		if got := len(increases(log)); got != 2*20 {
			t.Errorf("got %d increases in 20 reconciles", got)
		}
	})
}

// Values are read where client_golang keeps them. Its Write reports the same values.
func TestValuesAreThoseThatAreWritten(t *testing.T) {
	scenario(t, 3, "1", func(s *session) {
		mustStep(t, s, 100*second, change{faults: &faults{slowMetrics: 2 * second}})
		ownSeries.collect()
		for range 2 { // Write exchanges the two sets of counts of a histogram.
			for metric := range ownSeries.found {
				var out dto.Metric
				if err := metric.Write(&out); err != nil {
					t.Fatal(err)
				}
				one := newSeries(metric)
				if one.kind != histogram {
					written := out.Counter.GetValue() + out.Gauge.GetValue()
					if got := one.values.value(); got != written {
						t.Errorf("%s is %v, not %v", one.series, got, written)
					}
					continue
				}
				one.readHistogram()
				written := out.Histogram
				if one.now != written.GetSampleSum() || one.nowCount != written.GetSampleCount() {
					t.Errorf("%s is %v, %d", one.series, one.now, one.nowCount)
				}
				below := uint64(0)
				for i, bucket := range written.Bucket {
					if below += one.buckets[i].now; below != bucket.GetCumulativeCount() {
						t.Errorf("%s: %d, not %d", one.buckets[i].series, below, bucket.GetCumulativeCount())
					}
				}
			}
		}
	})
}
