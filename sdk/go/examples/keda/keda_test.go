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
const engineVariable = "KEDA_ENGINE"

func TestMain(m *testing.M) {
	switch os.Getenv(engineVariable) {
	case "operator":
		lockstep.Serve(engine)
	case "socket":
		e := engineWith("127.0.0.1:0")
		e.Patience = 2 * time.Second
		lockstep.Serve(e)
	}
	os.Exit(m.Run())
}

func TestScenarios(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Test(t, engine, "scenarios/*.yaml")
}

const (
	open = `{"open":{"scenario":"s","namespace":"default","flags":{"sync-period":15000000000},` +
		`"featureGates":{},"targets":[],"withoutScale":[],"sentEvents":true,"objects":[` +
		`{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"name":"web"},"spec":` +
		`{"scaleTargetRef":{"name":"web"},"pollingInterval":10,"cooldownPeriod":60,"triggers":[{"type":` +
		`"kubernetes-resource","metadata":{"resourceKind":"ConfigMap","resourceName":"queue",` +
		`"key":"length","targetValue":"10"}}]}}]}}`
	closing  = `{"close":{}}`
	workload = `{"setScale":{"resource":"deployments.apps","name":"web","replicas":0,` +
		`"statusReplicas":0,"selector":"app=web"}}`
)

func items(n int) string {
	return fmt.Sprintf(`{"applyObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":`+
		`{"name":"queue"},"data":{"length":"%d"}}}`, n)
}

// conversation is a scenario in which the queue has items for two minutes.
func conversation() []string {
	step := func(until time.Duration, changes ...string) string {
		return fmt.Sprintf(`{"step":{"apply":[%s],"until":%d}}`, strings.Join(changes, ","), until)
	}
	lines := []string{open, step(0, workload, items(0))}
	for at := time.Second; at <= 5*time.Minute; at += time.Second {
		switch at {
		case time.Minute:
			lines = append(lines, step(at, items(5)))
		case 3 * time.Minute:
			lines = append(lines, step(at, items(0)))
		default:
			lines = append(lines, step(at))
		}
	}
	return append(lines, closing)
}

// converse returns the answers of an engine in a new process.
func converse(t *testing.T, engine string, lines []string) ([]byte, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), engineVariable+"="+engine)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	return cmd.Output()
}

// 20 runs of a scenario in a process, and those of another process, are the same, byte by byte.
func TestRunsAreDeterministic(t *testing.T) {
	one := conversation()
	var lines []string
	for range 20 {
		lines = append(lines, one...)
	}
	first, err := converse(t, "operator", lines)
	if err != nil {
		t.Fatal(err)
	}
	second, err := converse(t, "operator", lines)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two processes differ")
	}
	answers := bytes.Split(bytes.TrimSpace(first), []byte("\n"))[1:]
	if len(answers) != 20*len(one) {
		t.Fatal(len(answers), "answers")
	}
	for i, answer := range answers {
		if !bytes.Equal(answer, answers[i%len(one)]) {
			t.Fatalf("run %d differs from the first one: %s", i/len(one), answer)
		}
	}
	for _, part := range []string{`"replicas":1`, `"replicas":0`} {
		if !bytes.Contains(first, []byte(`"apiVersion":"autoscaling/v1",`+part)) {
			t.Error("there is no write of the scale with", part)
		}
	}
	if bytes.Contains(first, []byte(`"failed"`)) {
		t.Error("a request failed")
	}
}

// The server of the operator's metrics would hold up the clock. The engine says so, and exits.
func TestASocketIsDiagnosed(t *testing.T) {
	answers, err := converse(t, "socket", conversation())
	if err == nil {
		t.Error("the engine did not fail")
	}
	for _, part := range []string{
		"[IO wait] at ", "controller-runtime@", "/pkg/metrics/server/server.go:", `BindAddress: \"0\"`,
	} {
		if !bytes.Contains(answers, []byte(part)) {
			t.Errorf("%q is not in %s", part, answers)
		}
	}
}
