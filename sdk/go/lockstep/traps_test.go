package lockstep

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
)

// outside is a channel that is made before any bubble.
var outside = make(chan struct{})

// engines are controllers for the tests. Most of them step into a trap.
var engines = map[string]Engine{
	"scaler":     {Name: "scaler", Start: scaler},
	"seer":       {Start: seer},
	"until-seen": {Start: untilSeen},
	"helped":     {Start: helped},
	"undead": {Start: func(_ context.Context, run *Run) error {
		return scaler(context.Background(), run)
	}},
	"queued": {Name: "queued", Start: queued("web", "api")},
	"socket": impatient(func(ctx context.Context, _ *Run) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		_, err = l.Accept()
		return err
	}),
	"channel": impatient(func(context.Context, *Run) error { <-outside; return nil }),
	"loop": impatient(func(context.Context, *Run) error {
		for n := 0; ; n++ {
			spin(n)
		}
	}),
	"ends": {Start: func(context.Context, *Run) error { return errors.New("no flags") }},
	"deaf": {Start: func(context.Context, *Run) error { select {} }},
	"ticks": {Start: func(ctx context.Context, _ *Run) error {
		go func() {
			for range time.Tick(time.Second) {
			}
		}()
		<-ctx.Done()
		return nil
	}},
	"restless": {Start: func(ctx context.Context, run *Run) error {
		c := kubernetes.NewForConfigOrDie(run.Config).AppsV1().Deployments(run.Namespace)
		return every(ctx, func() {
			for ctx.Err() == nil {
				_, err := c.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"paused":true}}`),
					metav1.PatchOptions{})
				if err != nil {
					return
				}
			}
		})
	}},
	"error": {Start: func(ctx context.Context, _ *Run) error {
		return every(ctx, func() { utilruntime.HandleError(errors.New("broken")) })
	}},
}

func impatient(start func(context.Context, *Run) error) Engine {
	return Engine{Start: start, Patience: 2 * time.Second}
}

//go:noinline
func spin(int) {}

// What holds up the clock is reported with its line and a remedy, and the engine exits.
func TestHeldUpClocksAreDiagnosed(t *testing.T) {
	for engine, words := range map[string][]string{
		"socket":  {"[IO wait] at ", "traps_test.go:", "holds up the clock", `BindAddress: "0"`},
		"channel": {"[chan receive] at ", "traps_test.go:", "a channel that was made outside of Start"},
		"loop":    {"[run", "traps_test.go:", "It computes without ever waiting"},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			answers, stderr := converse(t, engine, open, step(0, ""), closing)
			for _, word := range words {
				if !strings.Contains(why(answers), word) || !strings.Contains(stderr, word) {
					t.Errorf("%q is not in %s", word, why(answers))
				}
			}
		})
	}
}

func TestControllersThatMisbehaveFailTheirScenario(t *testing.T) {
	for engine, words := range map[string]string{
		"ends": "Engine.Start returned, although its context has not ended: no flags",
		"restless": "the controller controller never rests: it sent more than 1000 writes at t=7.5s without " +
			"waiting, the last one: patch /apis/apps/v1/namespaces/default/deployments/web",
	} {
		t.Run(engine, func(t *testing.T) {
			answers, _ := converse(t, engine, open, step(0, createWeb), step(time.Minute, ""), closing,
				open, closing)
			if !strings.Contains(why(answers), words) {
				t.Error(why(answers))
			}
			if last := answers[len(answers)-1]; engine == "restless" && last["closed"] == nil {
				t.Error("the next scenario did not run:", last)
			}
		})
	}
}

// Goroutines that never end are left behind, and reported. The next scenario runs.
func TestGoroutinesThatNeverEndAreLeftBehind(t *testing.T) {
	for _, engine := range []string{"deaf", "ticks"} {
		answers, stderr := converse(t, engine, open, closing, open, closing)
		if len(answers) != 5 || answers[4]["closed"] == nil {
			t.Errorf("%s: %v", engine, answers)
		}
		if !strings.Contains(stderr, "did not end with its context") ||
			!strings.Contains(stderr, "traps_test.go:") {
			t.Errorf("%s: %s", engine, stderr)
		}
	}
	if _, stderr := converse(t, "scaler", open, closing, open, closing); stderr != "" {
		t.Error(stderr)
	}
}

// Upstream's error handler would sleep for decades.
func TestErrorsTakeNoTime(t *testing.T) {
	answers, _ := converse(t, "error", open, step(15*time.Second, ""), closing)
	log := answers[2]["stepped"].(map[string]any)["log"].([]any)
	if len(log) != 1 || log[0].(map[string]any)["at"] != 7.5e9 {
		t.Error(log)
	}
}
