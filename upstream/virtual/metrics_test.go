//go:build k1.37

package virtual

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// metricsCase is a target with three ready pods whose HPA has one metric.
type metricsCase struct {
	metric string // of the HPA's spec
	spec   string // of the pods
	apply  string // the responses of the metrics APIs, as changes
}

type loggedEntry map[string]any

// firstReconcile runs a case in an engine, and returns the log at t=0.
func firstReconcile(t *testing.T, c metricsCase) []loggedEntry {
	t.Helper()
	first := strings.Replace(firstStepLine(3), `"metrics":[{"type":"Resource","resource":{"name":`+
		`"cpu","target":{"type":"Utilization","averageUtilization":50}}}]`,
		`"metrics":[`+c.metric+`]`, 1)
	if !strings.Contains(first, c.metric) {
		t.Fatal("the manifest has another metric")
	}
	if c.spec != "" {
		first = strings.Replace(first, `{"containers":[{"name":"app","requests":{"cpu":"1"}}]}`,
			c.spec, 1)
	}
	first = strings.Replace(first, `{"createHpa"`, c.apply+`,{"createHpa"`, 1)
	out := converse(t, openLine, first, `{"close":{}}`)
	var answer struct {
		Stepped struct{ Log []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(out[2]), &answer); err != nil || answer.Stepped.Log == nil {
		t.Fatal(out[2], err)
	}
	var log []loggedEntry
	for _, text := range answer.Stepped.Log {
		at := struct{ At *int64 }{}
		if err := json.Unmarshal(text, &at); err != nil || at.At == nil || *at.At != 0 {
			t.Errorf("the time of %s: %v", text, err)
		}
		var e loggedEntry
		text = []byte(strings.Replace(string(text), `"at":0,`, ``, 1))
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(string(text), err)
		}
		log = append(log, e)
	}
	return log
}

// only returns the single entry of a kind, as JSON with sorted keys.
func only(t *testing.T, log []loggedEntry, kind string) string {
	t.Helper()
	var found []string
	for _, e := range log {
		if value, ok := e[kind]; ok {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, string(text))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d entries %s in %v", len(found), kind, log)
	}
	return found[0]
}

func podsMetricLine(labels string, values ...string) string {
	var list []string
	for i, value := range values {
		list = append(list, fmt.Sprintf(
			`{"pod":"web-%d","template":"t0","value":%q,"timestamp":0,"window":30000000000}`, i, value))
	}
	return fmt.Sprintf(`{"podsMetric":{"metric":"rps","labels":%s,"values":[%s]}}`,
		labels, strings.Join(list, ","))
}

const (
	objectSource = `{"type":"Object","object":{"metric":{"name":"rps"},"describedObject":` +
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","name":"main"},"target":%s}}`
	objectLine = `{"objectMetric":{"metric":"rps","kind":"Ingress.networking.k8s.io",` +
		`"name":"main","series":[%s]}}`
	externalSource = `{"type":"External","external":{"metric":{"name":"queue","selector":%s},` +
		`"target":%s}}`
	queues = `{"externalMetric":{"metric":"queue","series":[` +
		`{"labels":{"queue":"a","zone":"1"},"value":"30","timestamp":0},` +
		`{"labels":{"queue":"b","zone":"1"},"value":"1k","timestamp":0},` +
		`{"labels":{"queue":"a","zone":"2"},"value":"30500m","timestamp":0}]}}`
	queueA       = `{"matchLabels":{"queue":"a"}}`
	averageValue = `{"type":"AverageValue","averageValue":%q}`
	value        = `{"type":"Value","value":%q}`
)

func podsSource(selector string) string {
	return `{"type":"Pods","pods":{"metric":{"name":"rps","selector":` + selector + `},` +
		`"target":{"type":"AverageValue","averageValue":"10"}}}`
}

func objectTarget(target, amount string) string {
	return fmt.Sprintf(objectSource, fmt.Sprintf(target, amount))
}

func externalTarget(selector, target, amount string) string {
	return fmt.Sprintf(externalSource, selector, fmt.Sprintf(target, amount))
}

func containerResource(container string) string {
	return `{"type":"ContainerResource","containerResource":{"name":"cpu","container":"` +
		container + `","target":{"type":"Utilization","averageUtilization":50}}}`
}

// usageLine sets the CPU usage of the pods' containers.
func usageLine(containers ...string) string {
	var samples []string
	for pod := range 3 {
		var list []string
		for i := 0; i < len(containers); i += 2 {
			list = append(list, fmt.Sprintf(`{"name":%q,"usage":[["cpu",%q]]}`,
				containers[i], containers[i+1]))
		}
		samples = append(samples, fmt.Sprintf(
			`{"pod":"web-%d","template":"t0","containers":[%s]}`, pod, strings.Join(list, ",")))
	}
	return `{"podMetrics":{"set":[` + strings.Join(samples, ",") + `]}}`
}

// Each decision would change if any part of the response were lost.
func TestEachTypeOfMetricDecides(t *testing.T) {
	other := `{"podTemplate":{"name":"t1","labels":{"app":"other"},"spec":{"containers":[]}}},`
	foreign := strings.Replace(podsMetricLine(`{"verb":"GET"}`, "16", "17", "18", "9k"),
		`"web-3","template":"t0"`, `"other-0","template":"t1"`, 1)
	sidecar := `{"containers":[{"name":"app","requests":{"cpu":"1"}}],"initContainers":[` +
		`{"name":"proxy","requests":{"cpu":"500m"},"sidecar":true}]}`
	for name, c := range map[string]struct {
		metricsCase
		query, queried string // the entry of the query
		replicas       int
		current        string // of the status
	}{
		"Pods": {
			metricsCase{podsSource(`{"matchLabels":{"verb":"GET"}}`), "", other + foreign},
			"podsMetric", `{"items":3,"kind":"Pod","metric":"rps","metricSelector":"verb=GET","selector":"app=web"}`,
			6, `{"averageValue":"17"}`,
		},
		"Pods, no selector": {
			metricsCase{podsSource(`null`), "", podsMetricLine(`{"verb":"GET"}`, "16", "17", "18")},
			"podsMetric", `{"items":3,"kind":"Pod","metric":"rps","metricSelector":"","selector":"app=web"}`,
			6, `{"averageValue":"17"}`,
		},
		"Object, Value": {
			metricsCase{objectTarget(value, "1200"), "",
				fmt.Sprintf(objectLine, `{"labels":{},"value":"2000","timestamp":0}`)},
			"objectMetric", `{"kind":"Ingress.networking.k8s.io","metric":"rps","metricSelector":"",` +
				`"name":"main","value":"2k"}`,
			5, `{"value":"2k"}`,
		},
		"Object, AverageValue": {
			metricsCase{objectTarget(averageValue, "501"), "",
				fmt.Sprintf(objectLine, `{"value":"2k","timestamp":0}`)},
			"objectMetric", `{"kind":"Ingress.networking.k8s.io","metric":"rps","metricSelector":"",` +
				`"name":"main","value":"2k"}`,
			4, `{"averageValue":"666667m"}`,
		},
		"External, Value": {
			metricsCase{externalTarget(queueA, value, "40"), "", queues},
			"externalMetric", `{"items":2,"metric":"queue","metricSelector":"queue=a"}`,
			5, `{"value":"60500m"}`,
		},
		"External, AverageValue": {
			metricsCase{externalTarget(queueA, averageValue, "15"), "", queues},
			"externalMetric", `{"items":2,"metric":"queue","metricSelector":"queue=a"}`,
			5, `{"averageValue":"20167m"}`,
		},
		"External, expressions": {
			metricsCase{externalTarget(`{"matchExpressions":[{"key":"zone","operator":"In",`+
				`"values":["2","1"]},{"key":"queue","operator":"NotIn","values":["b"]}]}`,
				averageValue, "15"), "", queues},
			"externalMetric", `{"items":2,"metric":"queue","metricSelector":"queue notin (b),` +
				`zone in (1,2)"}`,
			5, `{"averageValue":"20167m"}`,
		},
		"External, no selector": {
			metricsCase{externalTarget(`null`, averageValue, "300"), "", queues},
			"externalMetric", `{"items":3,"metric":"queue","metricSelector":""}`,
			4, `{"averageValue":"353500m"}`,
		},
		"ContainerResource": {
			metricsCase{containerResource("app"), "", usageLine("app", "800m", "log", "3")},
			"listPodMetrics", `{"items":3,"selector":"app=web"}`,
			5, `{"averageUtilization":80,"averageValue":"800m"}`,
		},
		"ContainerResource of a sidecar": {
			metricsCase{containerResource("proxy"), sidecar, usageLine("app", "1", "proxy", "400m")},
			"listPodMetrics", `{"items":3,"selector":"app=web"}`,
			5, `{"averageUtilization":80,"averageValue":"400m"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := firstReconcile(t, c.metricsCase)
			if got := only(t, log, c.query); got != c.queried {
				t.Errorf("queried %s, want %s", got, c.queried)
			}
			want := fmt.Sprintf(`{"apiVersion":"autoscaling/v1","name":"web","replicas":%d,`+
				`"resource":"deployments.apps","selector":"app=web","statusReplicas":3}`, c.replicas)
			if got := only(t, log, "updateScale"); got != want {
				t.Errorf("decided %s, want %s", got, want)
			}
			if got := only(t, log, "updateStatus"); !strings.Contains(got, `"current":`+c.current) {
				t.Errorf("wrote %s, without %s", got, c.current)
			}
		})
	}
}

func TestRequestsOfPodsAsAWhole(t *testing.T) {
	resource := `{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",` +
		`"averageUtilization":50}}}`
	for name, c := range map[string]struct {
		spec    string
		current string
	}{
		"sidecars count, init containers do not": {
			`{"containers":[{"name":"app","requests":{"cpu":"1"}}],"initContainers":[` +
				`{"name":"setup","requests":{"cpu":"8"}},` +
				`{"name":"proxy","requests":{"cpu":"1"},"sidecar":true}]}`,
			`{"averageUtilization":60,"averageValue":"1200m"}`,
		},
		"the pod's own requests and its overhead": {
			`{"containers":[{"name":"app","requests":{"cpu":"1"}}],"requests":{"cpu":"1500m"},` +
				`"overhead":{"cpu":"500m"}}`,
			`{"averageUtilization":60,"averageValue":"1200m"}`,
		},
		"the pod's own requests of something else": {
			`{"containers":[{"name":"app","requests":{"cpu":"1"}}],"initContainers":[` +
				`{"name":"setup","requests":{"cpu":"2"}}],"requests":{"memory":"1Gi"}}`,
			`{"averageUtilization":60,"averageValue":"1200m"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := firstReconcile(t, metricsCase{resource, c.spec, usageLine("app", "1200m")})
			if got := only(t, log, "updateStatus"); !strings.Contains(got, `"current":`+c.current) {
				t.Errorf("wrote %s, without %s", got, c.current)
			}
		})
	}
}

func TestErrorsOfMetrics(t *testing.T) {
	told := `"error":{"code":503,"reason":"ServiceUnavailable","message":"not now"}`
	two := `{"labels":{"a":"1"},"value":"1","timestamp":0},` +
		`{"labels":{"a":"2"},"value":"2","timestamp":0}`
	namespace := `{"type":"Object","object":{"metric":{"name":"rps"},"describedObject":` +
		`{"apiVersion":"v1","kind":"Namespace","name":"other"},"target":` +
		`{"type":"Value","value":"1"}}}`
	nothing := `{"podMetrics":{}}`
	for name, c := range map[string]struct {
		metricsCase
		query, why, end string
	}{
		"an unknown metric of pods": {
			metricsCase{podsSource(`null`), "", nothing}, "podsMetric",
			"the server could not find the metric rps for pods", "",
		},
		"an unknown metric of an object": {
			metricsCase{objectTarget(value, "1"), "", nothing}, "objectMetric",
			"the server could not find the metric rps for Ingress.networking.k8s.io main", "",
		},
		"an unknown metric of the namespace": {
			metricsCase{namespace, "", nothing}, "objectMetric",
			"the server could not find the metric rps for Namespace default", "",
		},
		"an unknown external metric": {
			metricsCase{externalTarget(`null`, value, "1"), "", nothing}, "externalMetric",
			"the server could not find the metric queue", "",
		},
		"pods' error": {
			metricsCase{podsSource(`null`), "", `{"podsMetric":{"metric":"rps",` + told + `}}`},
			"podsMetric", "not now", "",
		},
		"an object's error": {
			metricsCase{objectTarget(value, "1"), "", `{"objectMetric":{"metric":"rps","kind":` +
				`"Ingress.networking.k8s.io","name":"main","series":[],` + told + `}}`},
			"objectMetric", "not now", "",
		},
		"an external metric's error": {
			metricsCase{externalTarget(`null`, averageValue, "1"), "",
				`{"externalMetric":{"metric":"queue","series":[],` + told + `}}`},
			"externalMetric", "not now", "",
		},
		"two series of an object": {
			metricsCase{objectTarget(value, "1"), "", fmt.Sprintf(objectLine, two)},
			"objectMetric", "the custom metrics API server returned 2 results when we asked for " +
				"exactly one", "",
		},
		"no series of an object": {
			metricsCase{objectTarget(value, "1"), "", fmt.Sprintf(objectLine, "")},
			"objectMetric", "the custom metrics API server returned 0 results when we asked for " +
				"exactly one", "",
		},
		"series that the selector leaves out": {
			metricsCase{podsSource(`{"matchLabels":{"verb":"PUT"}}`), "",
				podsMetricLine(`{"verb":"GET"}`, "1", "2")},
			"podsMetric", "", "no metrics returned from custom metrics API",
		},
		"external series that the selector leaves out": {
			metricsCase{externalTarget(`{"matchLabels":{"queue":"c"}}`, value, "1"), "", queues},
			"externalMetric", "", "no metrics returned from external metrics API",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := firstReconcile(t, c.metricsCase)
			want := `"items":0`
			if c.why != "" {
				want = fmt.Sprintf(`"error":%q`, c.why)
				c.end = "metrics API: " + c.why
			}
			if got := only(t, log, c.query); !strings.Contains(got, want) {
				t.Errorf("queried %s, without %s", got, want)
			}
			if got := only(t, log, "error"); !strings.HasSuffix(got, c.end+`"}`) {
				t.Errorf("ended with %s, want %s", got, c.end)
			}
		})
	}
}
