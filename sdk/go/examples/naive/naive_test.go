package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kube-lockstep.dev/sdk/lockstep"
)

// engineVariable makes this test program the engine.
const engineVariable = "NAIVE_ENGINE"

func TestMain(m *testing.M) {
	if os.Getenv(engineVariable) != "" {
		lockstep.Serve(engine)
	}
	os.Exit(m.Run())
}

func TestScenarios(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Test(t, engine, "scenarios/*.yaml")
}

// Whatever the order of the events, which writes fail, and when it crashes: the scenarios conform.
func TestScenariosWithDisturbances(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Explore(t, engine, []string{"scenarios/*.yaml"}, lockstep.ExploreOptions{})
}

// Each write changes something, in any scenario of an HPA.
func TestGeneratedScenarios(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Fuzz(t, engine, lockstep.FuzzOptions{Expect: "properties.yaml", Ticks: 2000})
}

const (
	open = `{"open":{"scenario":"s","namespace":"default","flags":{"sync-period":15000000000},` +
		`"featureGates":{},"targets":[],"withoutScale":[],"sentEvents":true}}`
	template = `{"podTemplate":{"name":"t","labels":{"app":"web"},"spec":{"containers":` +
		`[{"name":"app","requests":{"cpu":"1"}}]}}}`
	scale = `{"setScale":{"resource":"deployments.apps","name":"web","replicas":10,` +
		`"statusReplicas":10,"selector":"app=web"}}`
	hpa = `{"createHpa":{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",` +
		`"metadata":{"name":"web"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1",` +
		`"kind":"Deployment","name":"web"},"maxReplicas":99}}}`
	closing = `{"close":{}}`
)

// conversation is a scenario with 10 pods, whose usage changes at each step if it varies.
func conversation(steps int, varies bool) []string {
	var pods, usage []string
	for i := range 10 {
		pods = append(pods, fmt.Sprintf(`{"name":"web-%d","template":"t","phase":"Running"}`, i))
	}
	metrics := func(n int) string {
		usage = usage[:0]
		for i := range 10 {
			usage = append(usage, fmt.Sprintf(`{"pod":"web-%d","template":"t","containers":`+
				`[{"name":"app","usage":[["cpu","%dm"]]}]}`, i, 800+n%5*50))
		}
		return `{"podMetrics":{"set":[` + strings.Join(usage, ",") + `]}}`
	}
	step := func(until time.Duration, changes ...string) string {
		return fmt.Sprintf(`{"step":{"apply":[%s],"until":%d}}`, strings.Join(changes, ","), until)
	}
	lines := []string{open, step(0, template, scale, `{"setPods":[`+strings.Join(pods, ",")+`]}`,
		metrics(0), hpa)}
	for n := range steps {
		var changes []string
		if varies {
			changes = []string{metrics(n)}
		}
		lines = append(lines, step(time.Duration(n+1)*15*time.Second, changes...))
	}
	return append(lines, closing)
}

// converse returns the answers of the engine in a new process.
func converse(t testing.TB, lines []string) []byte {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), engineVariable+"=1")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// 50 runs of a scenario in a process, and those of another process, are the same, byte by byte.
func TestRunsAreDeterministic(t *testing.T) {
	one := conversation(20, true)
	var lines []string
	for range 50 {
		lines = append(lines, one...)
	}
	first, second := converse(t, lines), converse(t, lines)
	if !bytes.Equal(first, second) {
		t.Error("two processes differ")
	}
	answers := bytes.Split(bytes.TrimSpace(first), []byte("\n"))[1:]
	if len(answers) != 50*len(one) {
		t.Fatal(len(answers), "answers")
	}
	for i, answer := range answers {
		if !bytes.Equal(answer, answers[i%len(one)]) {
			t.Fatalf("run %d differs from the first one: %s", i/len(one), answer)
		}
	}
	if !bytes.Contains(first, []byte(`"updateScale"`)) || bytes.Contains(first, []byte(`"failed"`)) {
		t.Error("the controller does not scale")
	}
}

// The time for a step of 15 s with a reconcile, with 10 pods.
func BenchmarkSteps(b *testing.B) {
	for name, varies := range map[string]bool{"steady": false, "varying": true} {
		b.Run(name, func(b *testing.B) { converse(b, conversation(b.N, varies)) })
	}
}
