//go:build k1.27

package virtual

import (
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func mustCreate(t *testing.T, api *hpaAPI, manifest string) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	hpa, _, err := api.create([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return hpa
}

func TestCreateFillsInTheDefaults(t *testing.T) {
	manifest := strings.Replace(hpaManifest, `"maxReplicas":`, `"behavior":{},"maxReplicas":`, 1)
	hpa := mustCreate(t, newHPAAPI("default"), manifest)
	meta := hpa.ObjectMeta
	if *hpa.Spec.MinReplicas != 1 || meta.Generation != 1 || meta.UID == "" || meta.Namespace == "" {
		t.Errorf("stored %+v", hpa)
	}
	up, down := hpa.Spec.Behavior.ScaleUp, hpa.Spec.Behavior.ScaleDown
	if len(up.Policies) != 2 || down.StabilizationWindowSeconds != nil {
		t.Errorf("behavior %+v", hpa.Spec.Behavior)
	}
}

func TestVersion1IsConverted(t *testing.T) {
	hpa := mustCreate(t, newHPAAPI("default"), `{"apiVersion":"autoscaling/v1","kind":
		"HorizontalPodAutoscaler","metadata":{"name":"web"},"spec":{"maxReplicas":9,
		"targetCPUUtilizationPercentage":60,"scaleTargetRef":{"apiVersion":"apps/v1",
		"kind":"Deployment","name":"web"}}}`)
	if got := *hpa.Spec.Metrics[0].Resource.Target.AverageUtilization; got != 60 {
		t.Errorf("averageUtilization %d", got)
	}
}

func TestRefusals(t *testing.T) {
	api := newHPAAPI("default")
	mustCreate(t, api, hpaManifest)
	edit := func(old, new string) string { return strings.Replace(hpaManifest, old, new, 1) }
	for _, c := range []struct{ manifest, message string }{
		{hpaManifest, `horizontalpodautoscalers.autoscaling "web" already exists`},
		{edit(`"maxReplicas"`, `"maxReplica"`), `HorizontalPodAutoscaler in version "v2" cannot be ` +
			`handled as a HorizontalPodAutoscaler: strict decoding error: unknown field "spec.maxReplica"`},
		{edit(`"maxReplicas":100000`, `"minReplicas":5,"maxReplicas":4`),
			`HorizontalPodAutoscaler.autoscaling "web" is invalid: spec.maxReplicas: Invalid value: 4: ` +
				"must be greater than or equal to `minReplicas`"},
		{edit(`"name":"web"`, `"name":"web","namespace":"other"`),
			`the namespace of the provided object does not match the namespace sent on the request`},
	} {
		stored, name, err := api.create([]byte(c.manifest))
		if stored != nil || name != "web" || err == nil || err.Error() != c.message {
			t.Errorf("%s\ngot %v, want %s", c.manifest, err, c.message)
		}
	}
	_, err := api.patch("none", []byte(`{}`))
	if err == nil || err.Error() != `horizontalpodautoscalers.autoscaling "none" not found` {
		t.Errorf("patch of nothing: %v", err)
	}
}

func TestOnlyAChangeOfTheSpecIsANewGeneration(t *testing.T) {
	api := newHPAAPI("default")
	version := mustCreate(t, api, hpaManifest).ResourceVersion
	for _, c := range []struct {
		patch      string
		generation int64
		written    bool
	}{
		{`{"spec":{"maxReplicas":100000}}`, 1, false},
		{`{"metadata":{"labels":{"a":"b"}}}`, 1, true},
		{`{"spec":{"maxReplicas":7}}`, 2, true},
		{`{"spec":{"metrics":null}}`, 3, true}, // back to the default metric
		{`{"status":{"desiredReplicas":5}}`, 3, false},
	} {
		hpa, err := api.patch("web", []byte(c.patch))
		if err != nil {
			t.Fatal(err)
		}
		if hpa.Generation != c.generation || (hpa.ResourceVersion != version) != c.written {
			t.Errorf("%s: generation %d, version %s, then %s",
				c.patch, hpa.Generation, version, hpa.ResourceVersion)
		}
		version = hpa.ResourceVersion
	}
}

func TestAStatusIsStoredInWholeSecondsAndLeavesTheSpec(t *testing.T) {
	api := newHPAAPI("default")
	sent := mustCreate(t, api, hpaManifest).DeepCopy()
	at := metav1.Time{Time: time.Date(2000, 1, 1, 0, 1, 0, 900, time.UTC)}
	sent.Spec.MaxReplicas = 3
	sent.Status.LastScaleTime = &at
	sent.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: "AbleToScale", Status: corev1.ConditionTrue, LastTransitionTime: at},
	}
	stored, err := api.updateStatus("default", sent)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Status.LastScaleTime.Nanosecond() != 0 || stored.Spec.MaxReplicas != 100000 {
		t.Errorf("stored %+v", stored)
	}
	if listed, version := api.table.list(); listed[0] != stored || version != stored.ResourceVersion {
		t.Errorf("listed %v at %s", listed, version)
	}
	_, err = api.updateStatus("default", sent)
	if err == nil || !strings.Contains(err.Error(), "has been modified") {
		t.Errorf("a stale write: %v", err)
	}
	sent.ResourceVersion, sent.Status.CurrentReplicas = stored.ResourceVersion, -1
	_, err = api.updateStatus("default", sent)
	if err == nil || !strings.Contains(err.Error(), "currentReplicas") {
		t.Errorf("a negative number: %v", err)
	}
}
