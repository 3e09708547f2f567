//go:build k1.37

package virtual

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const second = time.Second

// scenario runs f in a bubble in which n ready pods use cpu each and an HPA was created at t=0.
func scenario(t *testing.T, n int, cpu string, f func(*session)) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t)
		defer s.close()
		changes := append(readyPods(n), usages(n, 0, cpu), change{createHPA: []byte(hpaManifest)})
		mustStep(t, s, 0, changes...)
		f(s)
	})
}

// times are the times of the controller's actions.
func times(log []entry, kind entryKind) (at []time.Duration) {
	for _, e := range log {
		if e.kind == kind {
			at = append(at, e.at)
		}
	}
	return at
}

func expectTimes(t *testing.T, log []entry, kind entryKind, want ...time.Duration) {
	t.Helper()
	if got := times(log, kind); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTimeZeroIsAWholeSecondAndTheFirstReconcile(t *testing.T) {
	scenario(t, 3, "500m", func(s *session) {
		expectTimes(t, s.observed.entries, getScale, 0)
		if s.observed.epoch.Nanosecond() != 0 || s.now() != 0 {
			t.Errorf("it is %v after %v", s.now(), s.observed.epoch)
		}
		_, log := mustStep(t, s, 60*second)
		expectTimes(t, log, getScale, 15*second, 30*second, 45*second, 60*second)
		if len(log) != 8 {
			t.Errorf("no reconcile may be skipped, nor a status written: %+v", log)
		}
	})
}

func TestTheEntriesOfATickHaveOneOrder(t *testing.T) {
	for range 20 {
		scenario(t, 3, "1", func(s *session) {
			want := []entryKind{getScale, listPodMetrics, updateScale, updateStatus, event}
			log := withoutSeries(s.observed.entries)
			for i, e := range log {
				if e.kind != want[i] {
					t.Errorf("entry %d is %+v", i, e)
				}
			}
			if last := log[4]; last.reason != "SuccessfulRescale" || last.name != "web" {
				t.Errorf("event %+v", last)
			}
		})
	}
}

func TestAnEditIsReconciledAtOnce(t *testing.T) {
	scenario(t, 3, "500m", func(s *session) {
		mustStep(t, s, 7*second)
		edit := change{patchHPA: &patchHPA{name: "web", patch: []byte(`{"spec":{"maxReplicas":2}}`)}}
		answers, log := mustStep(t, s, 30*second, edit)
		expectTimes(t, log, getScale, 7*second, 15*second, 30*second)
		if len(answers) != 1 || answers[0].stored.Generation != 2 {
			t.Errorf("answers %+v", answers)
		}
	})
}

func TestARestartedControllerHasNoMemory(t *testing.T) {
	scenario(t, 4, "500m", func(s *session) {
		mustStep(t, s, 300*second, usages(4, 0, "100m"))
		// One second before the first controller would scale down.
		_, log := mustStep(t, s, 330*second, change{restart: true})
		expectTimes(t, log, updateScale)
		expectTimes(t, log, getScale, 300*second+100*time.Millisecond,
			315*second+100*time.Millisecond)
		_, log = mustStep(t, s, 640*second)
		expectTimes(t, log, updateScale, 615*second+100*time.Millisecond)
	})
}

func TestErrorsOfTheAPIServerAreRecorded(t *testing.T) {
	fault := &apiError{code: 503, reason: "ServiceUnavailable", message: "a distinctive message"}
	scenario(t, 3, "500m", func(s *session) {
		_, log := mustStep(t, s, 15*second, change{faults: &faults{listPodMetrics: fault}})
		if e := log[1]; e.kind != listPodMetrics || e.err.Error() != fault.message {
			t.Errorf("query %+v", e)
		}
		var kinds []entryKind
		for _, e := range log[2:] {
			kinds = append(kinds, e.kind)
			if e.kind != updateStatus && !strings.HasSuffix(e.message, fault.message) {
				t.Errorf("entry %+v", e)
			}
		}
		if !slices.Equal(kinds, []entryKind{updateStatus, reconcileError, event, event}) {
			t.Errorf("kinds %v", kinds)
		}
		_, log = mustStep(t, s, 30*second, change{faults: &faults{updateStatus: fault}})
		e := log[2]
		if e.kind != updateStatus || e.err.Error() != fault.message || len(e.status.Conditions) == 0 {
			t.Errorf("write %+v", e)
		}
	})
}

func TestAnUnknownTargetIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t)
		defer s.close()
		_, log := mustStep(t, s, 0, change{createHPA: []byte(hpaManifest)})
		if log[0].err == nil || log[0].err.Error() != `deployments.apps "web" not found` {
			t.Errorf("log %+v", log)
		}
	})
}

func TestATargetThatIsDeletedIsNotFound(t *testing.T) {
	scenario(t, 3, "500m", func(s *session) {
		_, log := mustStep(t, s, 15*second,
			change{deleteScale: &deleteScale{resource: "deployments.apps", name: "web"}})
		if log[0].err == nil || log[0].err.Error() != `deployments.apps "web" not found` {
			t.Errorf("log %+v", log)
		}
	})
}

func TestTheScaleOfAKindWithoutScaleIsNotFound(t *testing.T) {
	line := strings.Replace(openLine, `"targets":`, `"withoutScale":[{"group":"apps","version":"v1",`+
		`"kind":"DaemonSet","resource":"daemonsets"}],"targets":`, 1)
	q, err := parseRequest([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := openSession(q.open)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		hpa := strings.Replace(hpaManifest, `"kind":"Deployment"`, `"kind":"DaemonSet"`, 1)
		_, log := mustStep(t, s, 0, change{createHPA: []byte(hpa)})
		e := log[0]
		if e.resource != "daemonsets.apps" || e.err == nil ||
			e.err.Error() != "the server could not find the requested resource" {
			t.Errorf("log %+v", log)
		}
	})
}

func TestFeatureGatesAreRestored(t *testing.T) {
	for _, off := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q, _ := parseRequest([]byte(openLine))
			if off {
				q.open.featureGates["HPAGeneration"] = false
			}
			s, err := openSession(q.open)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			answers, _ := mustStep(t, s, 0, change{createHPA: []byte(hpaManifest)})
			if got := answers[0].stored.Generation; (got == 0) != off {
				t.Errorf("generation %d", got)
			}
		})
	}
	for gates, why := range map[string]string{
		`"PodLevelResources":false,"InPlacePodLevelResourcesVerticalScaling":false,` +
			`"PodLevelResourcesFixKubeletQOSClass":false`: `PodLevelResourcesFixDefaulting is ` +
			`enabled, but depends on features that are disabled: [PodLevelResources]`,
		`"Nope":true`: `unrecognized feature gate: Nope`,
		`"HPAConfigurableTolerance":false`: `cannot set feature gate HPAConfigurableTolerance to false, ` +
			`feature is locked to true`,
	} {
		line := strings.Replace(openLine, `"featureGates":{`, `"featureGates":{`+gates, 1)
		q, err := parseRequest([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openSession(q.open); err == nil || err.Error() != why {
			t.Errorf("%s: %v", gates, err)
		}
	}
}
