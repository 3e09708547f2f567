package virtual

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble gives a benchmark the *testing.T that a bubble requires. The timer of a benchmark must
// not be used inside: it would read the clock of the bubble.
func inBubble(tb testing.TB, f func()) {
	match := func(string, string) (bool, error) { return true, nil }
	ok := testing.RunTests(match, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) {
		synctest.Test(t, func(*testing.T) { f() })
	}}})
	if !ok {
		tb.Fatal("the bubble failed")
	}
}

func mustOpen(tb testing.TB) *session { return mustOpenLine(tb, openLine) }

func mustOpenLine(tb testing.TB, line string) *session {
	recordErrors()
	q, err := parseRequest([]byte(line))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := openSession(q.open)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

const openLine = `{"open":{"scenario":"bench","namespace":"default","flags":{` +
	`"sync-period":15000000000,"downscale-stabilization":300000000000,"tolerance":0.1,` +
	`"cpu-initialization-period":300000000000,"initial-readiness-delay":30000000000,` +
	`"upscale-delay":180000000000,"downscale-delay":300000000000,` +
	`"concurrent-horizontal-pod-autoscaler-syncs":5},"featureGates":{},` +
	`"targets":[{"group":"apps","version":"v1","kind":"Deployment","resource":"deployments"}]}}`

// observedLine opens a scenario in which everything is observed, as in fixtures.
var observedLine = strings.Replace(openLine, `{"open":{`, `{"open":{"allMetrics":true,"sentEvents":true,`, 1)

const hpaManifest = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",` +
	`"metadata":{"name":"web"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1",` +
	`"kind":"Deployment","name":"web"},"maxReplicas":100000,"metrics":[{"type":"Resource",` +
	`"resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}`

// readyPods are the changes that create a target with n ready pods that use half of their requests.
func readyPods(n int) []change {
	hour := -time.Hour
	replicas := int32(n)
	changes := []change{
		{podTemplate: &podTemplate{
			name: "t0", labels: map[string]string{"app": "web"},
			containers: []container{{name: "app", requests: map[string]string{"cpu": "1"}}},
		}},
		{setScale: &setScale{
			resource: "deployments.apps", name: "web", selector: "app=web",
			replicas: &replicas, statusReplicas: replicas,
		}},
		{setPods: []podState{}},
	}
	for i := range n {
		changes[2].setPods = append(changes[2].setPods, podState{
			name: fmt.Sprintf("web-%d", i), template: "t0", phase: "Running", startTime: &hour,
			ready: &podReady{status: "True", lastTransitionTime: hour},
		})
	}
	return append(changes, usages(n, 0, "500m"))
}

func usages(n int, at time.Duration, cpu string) change {
	window := 30 * time.Second
	c := change{podMetrics: &podMetricsChange{timestamp: &at, window: &window}}
	for i := range n {
		c.podMetrics.set = append(c.podMetrics.set, sample{
			pod: fmt.Sprintf("web-%d", i), template: "t0",
			containers: []usage{{container: "app", resources: [][2]string{{"cpu", cpu}}}},
		})
	}
	return c
}

func mustStep(
	tb testing.TB, s *session, until time.Duration, apply ...change,
) ([]apiAnswer, []entry) {
	tb.Helper()
	answers, log := mustStepWithSeries(tb, s, until, apply...)
	return answers, withoutSeries(log)
}

func mustStepWithSeries(
	tb testing.TB, s *session, until time.Duration, apply ...change,
) ([]apiAnswer, []entry) {
	tb.Helper()
	answers, log, err := s.step(&stepRequest{apply: apply, until: until})
	if err != nil {
		tb.Fatal(err)
	}
	return answers, log
}

// withoutSeries removes the controller's own metrics from a log: they depend on the release.
func withoutSeries(log []entry) []entry {
	return slices.DeleteFunc(slices.Clone(log), isSeries)
}

func isSeries(e entry) bool { return e.kind == metricIncrease || e.kind == metricValue }

// countActions is the length of withoutSeries, which a benchmark must not copy.
func countActions(log []entry) (count int) {
	for i := range log {
		if !isSeries(log[i]) {
			count++
		}
	}
	return count
}

// BenchmarkBare steps the real controller in-process, without the protocol, as the baseline of its
// overhead. One operation is one reconcile of an HPA with constant usage and fresh samples. All that
// the protocol reports is observed here as well.
func BenchmarkBare(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			inBubble(b, func() {
				s := mustOpenLine(b, observedLine)
				defer s.close()
				mustStep(b, s, 0, append(readyPods(n), change{createHPA: []byte(hpaManifest)})...)
				for i := range b.N {
					at := time.Duration(i+1) * 15 * time.Second
					fresh := change{podMetrics: &podMetricsChange{timestamp: &at}}
					_, log := mustStepWithSeries(b, s, at, fresh)
					if count := countActions(log); count != 2 {
						b.Fatalf("a tick logged %d entries", count)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
		})
	}
}

// BenchmarkStatus is BenchmarkBare with changing usage: each reconcile writes the status.
func BenchmarkStatus(b *testing.B) {
	b.ReportAllocs()
	inBubble(b, func() {
		s := mustOpenLine(b, observedLine)
		defer s.close()
		mustStep(b, s, 0, append(readyPods(10), change{createHPA: []byte(hpaManifest)})...)
		for i := range b.N {
			at := time.Duration(i+1) * 15 * time.Second
			usage := usages(10, at, []string{"500m", "510m"}[i%2])
			_, log := mustStepWithSeries(b, s, at, usage)
			if count := countActions(log); i > 0 && count != 3 {
				b.Fatalf("a tick logged %d entries", count)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
}

// BenchmarkOpenClose measures the cost of a scenario without its reconciles.
func BenchmarkOpenClose(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		inBubble(b, func() { mustOpen(b).close() })
	}
}

// BenchmarkProtocol is BenchmarkBare over the protocol and two pipes: a child process receives one
// step after another. The name contains the number of steps that are sent ahead.
func BenchmarkProtocol(b *testing.B) {
	for _, ahead := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("pods=10/ahead=%d", ahead), func(b *testing.B) { protocolTicks(b, ahead) })
	}
}

func protocolTicks(b *testing.B, ahead int) {
	engine := exec.Command(os.Args[0])
	engine.Stderr = os.Stderr
	in, err := engine.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := engine.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		b.Fatal(err)
	}
	answers := bufio.NewReaderSize(out, 1<<16)
	read := func(has string) {
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, has) {
			b.Fatal(line, err)
		}
	}
	write := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			b.Fatal(err)
		}
	}
	write(observedLine)
	write(firstStepLine(10))
	read("hello")
	read("opened")
	read("listPodMetrics")
	b.ResetTimer()
	for i := range b.N + ahead {
		if i < b.N {
			at := (i + 1) * 15
			write(fmt.Sprintf(`{"step":{"apply":[{"podMetrics":{"timestamp":%d000000000}}],`+
				`"until":%d000000000}}`, at, at))
		}
		if i >= ahead {
			read("listPodMetrics")
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := engine.Wait(); err != nil {
		b.Fatal(err)
	}
}

// firstStepLine is readyPods in the JSON of the protocol.
func firstStepLine(pods int) string {
	var states, samples []string
	for i := range pods {
		states = append(states, fmt.Sprintf(`{"name":"web-%d","template":"t0","phase":"Running",`+
			`"startTime":-3600000000000,"ready":{"status":"True",`+
			`"lastTransitionTime":-3600000000000}}`, i))
		samples = append(samples, fmt.Sprintf(`{"pod":"web-%d","template":"t0",`+
			`"containers":[{"name":"app","usage":[["cpu","500m"]]}]}`, i))
	}
	return fmt.Sprintf(`{"step":{"apply":[{"podTemplate":{"name":"t0","labels":{"app":"web"},`+
		`"spec":{"containers":[{"name":"app","requests":{"cpu":"1"}}]}}},`+
		`{"setScale":{"resource":"deployments.apps","name":"web","replicas":%[1]d,`+
		`"statusReplicas":%[1]d,"selector":"app=web"}},{"setPods":[%s]},{"podMetrics":`+
		`{"timestamp":0,"window":30000000000,"set":[%s]}},{"createHpa":%s}],"until":0}}`,
		pods, strings.Join(states, ","), strings.Join(samples, ","), hpaManifest)
}
