//go:build !k1.9

package virtual

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// reconciles is the expected log of the first reconcile of an HPA of four pods that use all of
// their requests.
func reconciles(t *testing.T, kind, metric string, apply ...string) string {
	t.Helper()
	manifest := `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":` +
		`{"name":"web","annotations":{"autoscaling.alpha.kubernetes.io/metrics":%q}},"spec":` +
		`{"scaleTargetRef":{"kind":%q,"name":"web"},"maxReplicas":20}}`
	first := strings.Replace(firstStepLine(4), hpaManifest, fmt.Sprintf(manifest, metric, kind), 1)
	first = strings.Replace(first, `"500m"`, `"1"`, -1)
	change := strings.Join(append(apply, `{"createHpa"`), ",")
	first = strings.Replace(first, `{"createHpa"`, change, 1)
	out := converse(t, openLine, first, `{"step":{"until":15000000000}}`, `{"close":{}}`)
	if len(out) != 5 || !strings.Contains(out[2], `"stored"`) {
		t.Fatal(out)
	}
	return out[3]
}

func TestQueriesOfHeapster(t *testing.T) {
	cpu := `[{"type":"Resource","resource":{"name":"cpu","targetAverageUtilization":50}}]`
	rps := `[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}}]`
	main := `[{"type":"Object","object":{"target":{"kind":"Ingress","name":"main"},` +
		`"metricName":"rps","targetValue":"10"}}]`
	scale := `"getScale":{"resource":"deployments.extensions","name":"web","replicas":4`
	values := `{"podsMetric":{"metric":"rps","labels":{},"values":[` +
		`{"pod":"web-1","template":"t0","value":"22500m","timestamp":0},` +
		`{"pod":"web-0","template":"t0","value":"20","timestamp":0},` +
		`{"pod":"web-3","template":"t0","value":"22500m","timestamp":0},` +
		`{"pod":"web-2","template":"t0","value":"20","timestamp":0}]}}`
	unavailable := `{"podsMetric":{"metric":"rps","labels":{},"error":` +
		`{"code":503,"reason":"ServiceUnavailable","message":"not now"}}}`
	query := `"podsMetric":{"metric":"rps","selector":"web-0,web-1,web-2,web-3","metricSelector":""`
	for name, c := range map[string]struct {
		metric string
		apply  []string
		log    []string
	}{
		"resource": {cpu, nil, []string{
			scale, `"listPodMetrics":{"selector":"app=web","items":4}`,
			`"updateScale":{"resource":"deployments.extensions","name":"web",` +
				`"apiVersion":"extensions/v1beta1","replicas":8,"statusReplicas":4,"selector":"app=web"}`,
			`"updateStatus"`, `"SuccessfulRescale"`,
		}},
		"pods": {rps, []string{values}, []string{
			scale, query + `,"items":4`, `"replicas":8`, `"currentAverageValue":"21250m"`,
		}},
		// The text differs in Kubernetes 1.6.
		"without samples": {rps, nil, []string{
			scale, query + `,"items":0`, " metrics for any ready pods",
		}},
		"an error": {rps, []string{unavailable}, []string{
			scale, query + `,"error":"not now"`, "failed to get pod metrics: not now",
		}},
		"object": {main, nil, []string{
			scale, "object metrics are not yet supported",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := reconciles(t, "Deployment", c.metric, c.apply...)
			for _, has := range c.log {
				_, rest, ok := strings.Cut(got, has)
				if !ok {
					t.Fatalf("%s without %s, or not in its place", got, has)
				}
				got = rest
			}
		})
	}
}

func TestScalesOfOtherKindsAreNotFound(t *testing.T) {
	got := reconciles(t, "StatefulSet", `[]`)
	has := `"getScale":{"resource":"statefulsets.extensions","name":"web",` +
		`"error":"the server could not find the requested resource"}`
	if !strings.Contains(got, has) {
		t.Error(got)
	}
	if got = reconciles(t, "ReplicaSet", `[]`); !strings.Contains(got,
		`"error":"replicasets/scale.extensions \"web\" not found"`) {
		t.Error(got)
	}
}

func TestValuesAreWholeOrFloat(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "2k": "2000", "18446744073709551615": "18446744073709551615",
		"18446744073709551616": "1.8446744073709552e+19", "1500m": "1.5", "-1": "-1", "100m": "0.1",
		"5000m": "5",
	} {
		point := metricPoint(&customValue{Value: resource.MustParse(text)})
		got := fmt.Sprint(point.Value)
		if point.FloatValue != nil {
			got = fmt.Sprint(*point.FloatValue)
		}
		if got != want || point.FloatValue != nil && point.Value != 0 {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestOnlyPlainSelectorsAreMaps(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"": {}, "app=web": {"app": "web"}, "app=web,tier=": {"app": "web", "tier": ""},
		"app in (web)": nil, "app=web,tier": nil, "app=a,app=b": nil, "%": nil,
	} {
		if got := matchLabels(text); len(got) != len(want) || len(want) > 0 &&
			!reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v", text, got)
		}
	}
}
