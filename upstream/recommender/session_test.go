package recommender

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

const openWeb = `{
	"scenario": "web", "start": 946684800, "flags": {"recommender-interval": "30s"},
	"apply": [
		{"setTarget": {"namespace": "ns", "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "selector": "app=web"}},
		{"setVpa": {"metadata": {"namespace": "ns", "name": "web"}, "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}},
		{"setPod": {"metadata": {"namespace": "ns", "name": "web-0", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "app"}]}, "status": {"phase": "Running"}}}
	]}`

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Fatal(err)
	}
	return value
}

// inSession calls a function with an open session in a bubble.
func inSession(t *testing.T, open string, test func(t *testing.T, s *session)) {
	q := parse[openRequest](t, open)
	synctest.Test(t, func(t *testing.T) {
		s, err := openSession(q)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

func step(t *testing.T, s *session, text string) *steppedAnswer {
	t.Helper()
	answer, err := s.step(parse[stepRequest](t, text))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestARunWritesTheStatusAndThenTheCheckpoint(t *testing.T) {
	inSession(t, openWeb, func(t *testing.T, s *session) {
		answer := step(t, s, `{"until": 60000000000, "apply": [{"setMetrics": {"items": [
			{"namespace": "ns", "name": "web-0", "timestamp": 946684820, "containers": [{"name": "app", "cpu": "123456789n", "memory": "1Gi"}]}]}}]}`)
		if answer.Now != 60e9 || len(answer.Runs) != 2 || answer.Runs[0].At != 30e9 {
			t.Fatalf("%+v", answer)
		}
		writes := answer.Runs[0].Writes
		if len(writes) != 2 || writes[0].Status == nil || writes[1].Spec == nil {
			t.Fatalf("%+v", writes)
		}
		status := parse[vpa_types.VerticalPodAutoscalerStatus](t, string(writes[0].Status))
		target := status.Recommendation.ContainerRecommendations[0].Target
		// 124 millicores and 1 GiB: the ends of their buckets, and the margin of 15%.
		if target.Cpu().String() != "143m" || target.Memory().Value() != 1238659775 {
			t.Fatalf("%v %v", target.Cpu(), target.Memory().Value())
		}
		// The second run reads the same samples again: the CPU sample is discarded.
		// In old releases, the message contains the error.
		log := answer.Runs[1].Log
		if len(log) != 1 || !strings.HasPrefix(log[0].Message, "Error adding metric sample") ||
			!strings.HasSuffix(log[0].Message+log[0].Error, "sample discarded (invalid or out of order)") {
			t.Fatalf("%+v", log)
		}
	})
}

func TestARestartedRecommenderRunsOneIntervalLater(t *testing.T) {
	inSession(t, openWeb, func(t *testing.T, s *session) {
		if answer := step(t, s, `{"until": 40000000000}`); len(answer.Runs) != 1 {
			t.Fatalf("%+v", answer)
		}
		answer := step(t, s, `{"apply": [{"restart": {}}], "until": 70000000000}`)
		if len(answer.Runs) != 1 || answer.Runs[0].At != 70e9 {
			t.Fatalf("%+v", answer)
		}
	})
}

func TestNoWriteOfParallelWorkersIsLost(t *testing.T) {
	c := newCluster(nil)
	const workers, each = 10, 100_000
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				c.record(write{})
			}
		})
	}
	all.Wait()
	if len(c.writes) != workers*each {
		t.Errorf("%d writes, not %d", len(c.writes), workers*each)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"start": 1, "flags": {}}`:                                              "before the year 2000",
		`{"start": 946684800, "flags": {"no-such-flag": "1"}}`:                   "-no-such-flag",
		`{"start": 946684800, "flags": {"recommender-interval": "0s"}}`:          "must be positive",
		`{"start": 946684800, "apply": [{}]}`:                                    "without a known member",
		`{"start": 946684800, "flags": {"cpu-histogram-decay-half-life": "1x"}}`: "parse error",
	} {
		q := parse[openRequest](t, text)
		synctest.Test(t, func(t *testing.T) {
			_, err := openSession(q)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}

func TestAStepIntoThePastIsRefused(t *testing.T) {
	inSession(t, openWeb, func(t *testing.T, s *session) {
		step(t, s, `{"until": 10}`)
		if _, err := s.step(&stepRequest{Until: 5}); err == nil {
			t.Error("no error")
		}
	})
}
