package lockstep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// seer reports the replicas that its informer sees, as errors.
func seer(ctx context.Context, run *Run) error {
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(run.Config), 0)
	see := func(o any) {
		utilruntime.HandleError(fmt.Errorf("%d replicas", *o.(*appsv1.Deployment).Spec.Replicas))
	}
	_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// disturbed opens a scenario with disturbances.
func disturbed(disturbances string) string {
	return strings.Replace(open, `"scenario":"s"`,
		`"scenario":"s","disturbances":[`+disturbances+`]`, 1)
}

// logOf returns the entries of a kind in an answer: their times, and the value of a field.
func logOf(t *testing.T, answer map[string]any, kind, field string) (list []string) {
	t.Helper()
	stepped, ok := answer["stepped"].(map[string]any)
	if !ok {
		t.Fatal(answer)
	}
	for _, e := range stepped["log"].([]any) {
		entry := e.(map[string]any)
		if body, ok := entry[kind].(map[string]any); ok {
			text := fmt.Sprintf("%v %v", time.Duration(entry["at"].(float64)), body[field])
			if body["error"] != nil {
				text += " refused"
			}
			list = append(list, text)
		}
	}
	return list
}

func scaleTo(replicas int) string {
	return fmt.Sprintf(`{"setScale":{"resource":"deployments.apps","name":"web","replicas":%d,`+
		`"statusReplicas":2,"selector":"app=web"}}`, replicas)
}

// An event that is held is delivered late, and the later ones of its watch wait for it. The second
// watch, of the restarted controller, has its own numbers.
func TestEventsAreHeld(t *testing.T) {
	steps := []string{step(0, createWeb), step(time.Second, scaleTo(3)),
		step(time.Second, scaleTo(4)), step(2*time.Second, ""), step(3*time.Second, `"restartController"`),
		step(4*time.Second, scaleTo(5)), closing}
	for disturbances, want := range map[string][]string{
		"": {"0s 2 replicas", "0s 3 replicas", "1s 4 replicas", "2s 4 replicas", "3s 5 replicas"},
		`{"hold":{"resource":"deployments.apps","watch":1,"event":2,"delay":1500000000}}`: {
			"0s 2 replicas", "1.5s 3 replicas", "1.5s 4 replicas", "2s 4 replicas", "3s 5 replicas"},
		`{"hold":{"resource":"deployments.apps","watch":2,"event":1,"delay":2000000}}`: {
			"0s 2 replicas", "0s 3 replicas", "1s 4 replicas", "2s 4 replicas", "3.002s 5 replicas"},
		`{"hold":{"resource":"pods","watch":1,"event":1,"delay":2000000}}`: {
			"0s 2 replicas", "0s 3 replicas", "1s 4 replicas", "2s 4 replicas", "3s 5 replicas"},
	} {
		answers, _ := converse(t, "seer", append([]string{disturbed(disturbances)}, steps...)...)
		var seen []string
		for _, answer := range answers[2 : len(answers)-1] {
			seen = append(seen, logOf(t, answer, "error", "message")...)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s: %q, not %q", disturbances, seen, want)
		}
	}
}

// The scaler adds a replica at 7.5 s, 22.5 s, and so on.
func TestWritesFailAndControllersCrash(t *testing.T) {
	for disturbances, want := range map[string][]string{
		"": {"7.5s 3", "22.5s 4"},
		`{"answer":{"write":1,"with":"conflict"}}`:      {"7.5s 3 refused", "22.5s 3"},
		`{"answer":{"write":1,"with":"unavailable"}}`:   {"7.5s 3 refused", "22.5s 3"},
		`{"answer":{"write":2,"with":"internalError"}}`: {"7.5s 3", "22.5s 4 refused"},
		`{"answer":{"write":1,"with":"timeout"}}`:       {"7.5s 3", "22.5s 4"},
		// A controller that starts acts at once.
		`{"crash":{"write":1,"when":"before"}}`: {"7.5s 3", "22.5s 4"},
		`{"crash":{"write":1,"when":"after"}}`:  {"7.5s 3", "7.5s 4", "22.5s 5"},
		`{"crash":{"write":1,"when":"after"}},{"crash":{"write":2,"when":"before"}}`: {
			"7.5s 3", "7.5s 4", "22.5s 5"},
		`{"crash":{"write":3,"when":"after"}}`: {"7.5s 3", "22.5s 4"},
	} {
		answers, _ := converse(t, "scaler", disturbed(disturbances), step(0, createWeb),
			step(30*time.Second, ""), closing, open, closing)
		if seen := logOf(t, answers[3], "updateScale", "replicas"); !slices.Equal(seen, want) {
			t.Errorf("%s: %q, not %q", disturbances, seen, want)
		}
		if last, _ := json.Marshal(answers[6]); string(last) != `{"closed":{}}` {
			t.Errorf("the next scenario is not disturbed, but: %s", last)
		}
	}
}

// A controller that does not end with its context still has no effect after its crash.
func TestACrashedControllerHasNoEffect(t *testing.T) {
	answers, stderr := converse(t, "undead", disturbed(`{"crash":{"write":1,"when":"before"}}`),
		step(0, createWeb), step(30*time.Second, ""), closing)
	// The one that was started after the crash scales.
	want := []string{"7.5s 3", "22.5s 4"}
	if seen := logOf(t, answers[3], "updateScale", "replicas"); !slices.Equal(seen, want) {
		t.Error(seen)
	}
	if !strings.Contains(stderr, "did not end with its context") {
		t.Error(stderr)
	}
}

// untilSeen scales once, and then writes a ConfigMap at each of its events until its cache has the new
// replicas.
func untilSeen(ctx context.Context, run *Run) error {
	client := kubernetes.NewForConfigOrDie(run.Config)
	factory := informers.NewSharedInformerFactory(client, 0)
	deployments := factory.Apps().V1().Deployments()
	maps := client.CoreV1().ConfigMaps(run.Namespace)
	write := func(o any) {
		seen, err := deployments.Lister().Deployments(run.Namespace).Get("web")
		if err == nil && *seen.Spec.Replicas == 2 {
			m := o.(*corev1.ConfigMap).DeepCopy()
			m.Data = map[string]string{"n": m.ResourceVersion}
			_, _ = maps.Update(ctx, m, metav1.UpdateOptions{})
		}
	}
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: write, UpdateFunc: func(_, o any) { write(o) }})
	if err != nil {
		return err
	}
	deployments.Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	time.Sleep(10 * time.Second)
	scale, err := client.AppsV1().Deployments(run.Namespace).GetScale(ctx, "web", metav1.GetOptions{})
	if err == nil {
		scale.Spec.Replicas = 3
		_, err = client.AppsV1().Deployments(run.Namespace).UpdateScale(ctx, "web", scale,
			metav1.UpdateOptions{})
	}
	if err == nil {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	}
	<-ctx.Done()
	return err
}

// A controller that acts until it sees an event gets it in the end: meanwhile, its requests take time.
func TestAHeldEventArrives(t *testing.T) {
	for disturbances, least := range map[string]int{
		"": 2,
		`{"hold":{"resource":"deployments.apps","watch":1,"event":2,"delay":1000000}}`:    100,
		`{"hold":{"resource":"deployments.apps","watch":1,"event":2,"delay":2000000000}}`: 2000,
	} {
		answers, _ := converse(t, "until-seen", disturbed(disturbances), step(0, createWeb),
			step(10*time.Second, ""), closing)
		last, ok := answers[len(answers)-1]["closed"].(map[string]any)
		if !ok || why(answers) != "" {
			t.Errorf("%s: %s", disturbances, why(answers))
			continue
		}
		if writes := last["disturbable"].(map[string]any)["writes"].([]any); len(writes) < least {
			t.Errorf("%s: %d writes", disturbances, len(writes))
		}
	}
}

// helped is the scaler with a helper, whose requests are neither disturbed nor counted.
func helped(ctx context.Context, run *Run) error {
	maps := kubernetes.NewForConfigOrDie(run.ConfigFor("helper")).CoreV1().ConfigMaps(run.Namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m"}}
	if _, err := maps.Create(ctx, m, metav1.CreateOptions{}); err != nil {
		return err
	}
	return scaler(ctx, run)
}

func TestOtherClientsAreNotDisturbed(t *testing.T) {
	answers, _ := converse(t, "helped", disturbed(`{"answer":{"write":1,"with":"conflict"}}`),
		step(0, createWeb), step(20*time.Second, ""), closing)
	want := []string{"7.5s 3 refused"}
	if seen := logOf(t, answers[3], "updateScale", "replicas"); !slices.Equal(seen, want) {
		t.Error(seen)
	}
}

func TestWhatCanBeDisturbedIsReported(t *testing.T) {
	answers, _ := converse(t, "seer", disturbed(""), step(0, createWeb), step(time.Second, scaleTo(3)),
		closing)
	text, _ := json.Marshal(answers[len(answers)-1])
	if want := `{"closed":{"disturbable":{"watches":[{"controller":"controller","events":[` +
		`{"at":0,"name":"web","type":"ADDED"},{"at":0,"name":"web","type":"MODIFIED"}],` +
		`"resource":"deployments.apps"}],"writes":[]}}}`; string(text) != want {
		t.Error(string(text))
	}
	answers, _ = converse(t, "scaler", disturbed(""), step(0, createWeb), step(8*time.Second, ""),
		closing)
	text, _ = json.Marshal(answers[len(answers)-1])
	if want := `{"closed":{"disturbable":{"watches":[],"writes":[{"at":7500000000,` +
		`"controller":"scaler","name":"web","resource":"deployments.apps","subresource":"scale",` +
		`"verb":"update"}]}}}`; string(text) != want {
		t.Error(string(text))
	}
}
