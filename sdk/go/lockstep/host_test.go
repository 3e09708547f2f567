package lockstep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The tests start this test program again as an engine, since a bubble that hangs ends its process.
func TestMain(m *testing.M) {
	if name := os.Getenv("ENGINE"); name != "" {
		Serve(engines[name])
	}
	os.Exit(m.Run())
}

const open = `{"open":{"scenario":"s","namespace":"default","flags":{"sync-period":15000000000},` +
	`"featureGates":{},"targets":[{"group":"apps","version":"v1","kind":"Deployment",` +
	`"resource":"deployments"}],"withoutScale":[],"sentEvents":true}}`

const createWeb = `{"podTemplate":{"name":"t","labels":{"app":"web"},"spec":{"containers":` +
	`[{"name":"app","requests":{"cpu":"1"}}]}}},` +
	`{"setScale":{"resource":"deployments.apps","name":"web","replicas":2,"statusReplicas":2,` +
	`"selector":"app=web"}},{"setPods":[{"name":"web-0","template":"t","phase":"Running"}]},` +
	`{"createHpa":{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",` +
	`"metadata":{"name":"web"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1",` +
	`"kind":"Deployment","name":"web"},"maxReplicas":9}}}`

func step(until time.Duration, changes string) string {
	return fmt.Sprintf(`{"step":{"apply":[%s],"until":%d}}`, changes, until)
}

const closing = `{"close":{}}`

// converse returns the answers of an engine to lines of the protocol, and its error output.
func converse(
	t *testing.T,
	engine string,
	lines ...string,
) (answers []map[string]any, errors string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "ENGINE="+engine)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if ctx.Err() != nil {
		t.Fatal("the engine hangs")
	}
	for line := range strings.Lines(string(out)) {
		answer := map[string]any{}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		answers = append(answers, answer)
	}
	return answers, stderr.String()
}

// why is the reason of the first failed answer.
func why(answers []map[string]any) string {
	for _, a := range answers {
		if failed, ok := a["failed"].(map[string]any); ok {
			return failed["why"].(string)
		}
	}
	return ""
}

// every calls f at once and every 15 s, until the context ends.
func every(ctx context.Context, f func()) error {
	ticker := time.NewTicker(15 * time.Second)
	defer ticker.Stop()
	for {
		f()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// scaler sets the replicas to one more than they are.
func scaler(ctx context.Context, run *Run) error {
	c := kubernetes.NewForConfigOrDie(run.Config).AppsV1().Deployments(run.Namespace)
	return every(ctx, func() {
		if scale, err := c.GetScale(ctx, "web", metav1.GetOptions{}); err == nil {
			scale.Spec.Replicas++
			_, _ = c.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
		}
	})
}

func TestStepsReportWhatTheControllerDoes(t *testing.T) {
	answers, _ := converse(
		t,
		"scaler",
		open,
		step(0, createWeb),
		step(15*time.Second, ""),
		step(
			20*time.Second,
			`{"faults":{"getScale":{"code":503,"reason":"ServiceUnavailable","message":"no"}}}`,
		),
		step(30*time.Second, ""),
		closing,
	)
	if len(answers) != 7 || why(answers) != "" {
		t.Fatal(len(answers), why(answers))
	}
	text := make([]string, len(answers))
	for i, a := range answers {
		line, _ := json.Marshal(a)
		text[i] = string(line)
	}
	for i, want := range map[int]string{
		0: `"protocol":3`, 1: `"epoch":"2000-01-01T00:01:00Z"`,
		2: `"maxReplicas":9,"metrics":[{"resource":{"name":"cpu","target":` +
			`{"averageUtilization":80,"type":"Utilization"}}`,
		// The controller started 7.5 s before t=0.
		3: `{"at":7500000000,"namespace":"default","updateScale":{"apiVersion":"autoscaling/v1",` +
			`"name":"web","replicas":3,"resource":"deployments.apps","selector":"app=web","statusReplicas":2}}`,
		5: `{"at":22500000000,"getScale":{"error":"no","name":"web","resource":"deployments.apps"}`,
		6: `{"closed":{}}`,
	} {
		if !strings.Contains(text[i], want) {
			t.Errorf("answer %d is %s, without %s", i, text[i], want)
		}
	}
}

// Scenarios do not affect each other, and each run of one is the same.
func TestScenariosAreIndependentAndDeterministic(t *testing.T) {
	var lines []string
	for range 50 {
		lines = append(lines, open, step(0, createWeb), step(time.Minute, ""), closing)
	}
	answers, _ := converse(t, "scaler", lines...)
	distinct := map[string]bool{}
	for i, a := range answers[1:] {
		text, _ := json.Marshal(a)
		distinct[fmt.Sprint(i%4, string(text))] = true
	}
	if len(answers) != 201 || len(distinct) != 4 {
		t.Error(len(answers), "answers,", len(distinct), "distinct ones")
	}
}

func TestRestartsStartAnotherController(t *testing.T) {
	answers, _ := converse(t, "scaler", open, step(0, createWeb),
		step(time.Second, `"restartController"`), closing)
	text, _ := json.Marshal(answers[3])
	if !strings.Contains(string(text), `"replicas":3`) {
		t.Error(string(text))
	}
}

func TestUnknownChangesAreNamed(t *testing.T) {
	answers, stderr := converse(t, "scaler", open, step(0, `{"explode":{}}`), closing)
	if !strings.Contains(stderr+why(answers), `the SDK does not know the change {"explode":{}}`) {
		t.Error(why(answers), stderr)
	}
}
