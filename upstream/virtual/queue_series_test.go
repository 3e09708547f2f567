//go:build k1.37

package virtual

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// queueIncreases are the increases of the work queue's metrics in a log.
func queueIncreases(log []entry) []string {
	var all []string
	for _, e := range log {
		if series, found := strings.CutPrefix(e.metric, queueSubsystem); found {
			all = append(all, fmt.Sprintf("%s +%v", series, e.amount))
		}
	}
	return all
}

func TestEachReconcileReportsWhatTheWorkQueueDidBeforeIt(t *testing.T) {
	for _, turns := range []string{"false", "true"} {
		t.Run("turns="+turns, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line := strings.Replace(openLine, `{"open":{`, `{"open":{"allMetrics":true,"turns":`+turns+`,`, 1)
				s := mustOpenLine(t, line)
				defer s.close()
				first := append(readyPods(3), change{createHPA: []byte(hpaManifest)})
				_, log := mustStepWithSeries(t, s, 0, first...)
				// The informer has added the HPA.
				want := []string{"adds_total +1"}
				if got := queueIncreases(log); !slices.Equal(got, want) {
					t.Errorf("the first reconcile: %v, not %v", got, want)
				}
				// The first reconcile and its write of the status have queued the HPA, and so has a
				// resync.
				_, log = mustStepWithSeries(t, s, 15*second)
				want = []string{"adds_total +1", "retries_total +3"}
				if got := queueIncreases(log); !slices.Equal(got, want) {
					t.Errorf("the second reconcile: %v, not %v", got, want)
				}
				// A resync queues the HPA while its reconcile waits from 30s to 50s for a slow response.
				slow := change{faults: &faults{slowMetrics: 20 * second}}
				_, log = mustStepWithSeries(t, s, 80*second, slow)
				want = []string{
					"adds_total +1", "retries_total +2",
					"adds_total +1", "retries_total +2", "work_duration_seconds_sum +20",
				}
				if got := queueIncreases(log); !slices.Equal(got, want) {
					t.Errorf("slow reconciles: %v, not %v", got, want)
				}
			})
		})
	}
}
