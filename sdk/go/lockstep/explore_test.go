package lockstep

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// forgetful sets the replicas to 4, and then the status. Only its memory knows that the status is
// still to be written, so a crash between the two writes loses it. Errors do not.
func forgetful(ctx context.Context, run *Run) error {
	client := kubernetes.NewForConfigOrDie(run.Config)
	deployments := client.AppsV1().Deployments(run.Namespace)
	hpas := client.AutoscalingV2().HorizontalPodAutoscalers(run.Namespace)
	isStatusDue := false
	return every(ctx, func() {
		scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
		if err == nil && scale.Spec.Replicas != 4 {
			isStatusDue = true
			scale.Spec.Replicas = 4
			_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
		}
		if err != nil || !isStatusDue {
			return
		}
		hpa, err := hpas.Get(ctx, "web", metav1.GetOptions{})
		if err == nil {
			hpa.Status.DesiredReplicas = 4
			_, err = hpas.UpdateStatus(ctx, hpa, metav1.UpdateOptions{})
		}
		isStatusDue = err != nil
	})
}

func TestACrashBetweenTwoWritesIsFound(t *testing.T) {
	if _, err := Program(); err != nil {
		t.Skip(err)
	}
	scenarios := []string{"testdata/two-writes.yaml"}
	explored := Explorations(t, Engine{Start: forgetful, Name: "forgetful"}, scenarios,
		ExploreOptions{Runs: 100, Seed: 7})
	if len(explored) != 1 || explored[0].Verdict != "conforms" || explored[0].Runs != 100 ||
		len(explored[0].Findings) != 1 {
		t.Fatalf("%+v", explored)
	}
	found := explored[0].Findings[0]
	text := found.String()
	t.Log(text)
	if len(found.Disturbances) != 1 || !slices.Contains(
		[]string{"crash after write 1", "crash before write 2"}, found.Disturbances[0].Text) {
		t.Errorf("%+v", found.Disturbances)
	}
	for _, part := range []string{
		"the controller crashes right ", "two-writes.yaml:22: ", "expected 4", `Disturb: []string{"crash `,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}

// The disturbances of a finding run alone.
func TestGivenDisturbancesAreReplayed(t *testing.T) {
	if _, err := Program(); err != nil {
		t.Skip(err)
	}
	scenarios := []string{"testdata/two-writes.yaml"}
	for text, findings := range map[string]int{
		"crash before write 2": 1, "crash before write 1": 0, "answer write 2 with conflict": 0,
	} {
		t.Run(text, func(t *testing.T) {
			explored := Explorations(t, Engine{Start: forgetful, Patience: time.Minute}, scenarios,
				ExploreOptions{Disturb: []string{text}})
			if len(explored) != 1 || explored[0].Runs != 1 || len(explored[0].Findings) != findings {
				t.Errorf("%+v", explored)
			}
		})
	}
}

// strict sets the replicas and the status to 4, and panics on any error.
func strict(ctx context.Context, run *Run) error {
	client := kubernetes.NewForConfigOrDie(run.Config)
	deployments := client.AppsV1().Deployments(run.Namespace)
	hpas := client.AutoscalingV2().HorizontalPodAutoscalers(run.Namespace)
	must := func(err error) {
		if err != nil && ctx.Err() == nil {
			panic(err)
		}
	}
	return every(ctx, func() {
		scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
		if err == nil && scale.Spec.Replicas != 4 {
			scale.Spec.Replicas = 4
			_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
			must(err)
		}
		hpa, err := hpas.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && hpa.Status.DesiredReplicas != 4 {
			hpa.Status.DesiredReplicas = 4
			_, err = hpas.UpdateStatus(ctx, hpa, metav1.UpdateOptions{})
			must(err)
		}
	})
}

// What a controller does with an error is not done by one that has crashed.
func TestACrashedControllerDoesNothingMore(t *testing.T) {
	if _, err := Program(); err != nil {
		t.Skip(err)
	}
	scenarios := []string{"testdata/two-writes.yaml"}
	explored := Explorations(t, Engine{Start: strict, Name: "strict"}, scenarios,
		ExploreOptions{Runs: 20, Only: []string{"crash"}})
	if len(explored) != 1 || explored[0].Runs != 20 || explored[0].Failed > 0 {
		t.Errorf("%+v", explored)
	}
	explored = Explorations(t, Engine{Start: strict, Name: "strict"}, scenarios,
		ExploreOptions{Runs: 20, Only: []string{"answer"}})
	if len(explored) != 1 || len(explored[0].Findings) == 0 {
		t.Errorf("a panic is no finding: %+v", explored)
	}
}
