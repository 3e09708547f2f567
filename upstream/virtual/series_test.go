//go:build k1.37

package virtual

import (
	"slices"
	"strings"
	"testing"
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
