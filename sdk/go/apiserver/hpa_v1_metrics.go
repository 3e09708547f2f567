package apiserver

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// metricField is a field of a metric or its status: its path in autoscaling/v2, and its name in v1.
type metricField struct {
	v2 fieldPath
	v1 string
}

type fieldPath []string

// metricFields are the fields of metrics and of their statuses, as paths in v2 and names in v1, by
// the kind of metric.
var metricFields = map[string][]metricField{
	"resource": resourceFields,
	"containerResource": append([]metricField{
		{fieldPath{"container"}, "container"},
	}, resourceFields...),
	"pods": {
		{fieldPath{"metric", "name"}, "metricName"}, {fieldPath{"metric", "selector"}, "selector"},
		{fieldPath{"target", "averageValue"}, "targetAverageValue"},
		{fieldPath{"current", "averageValue"}, "currentAverageValue"},
	},
	"object": {
		{fieldPath{"describedObject"}, "target"}, {fieldPath{"metric", "name"}, "metricName"},
		{fieldPath{"metric", "selector"}, "selector"}, {fieldPath{"target", "value"}, "targetValue"},
		{fieldPath{"target", "averageValue"}, "averageValue"},
		{fieldPath{"current", "value"}, "currentValue"},
		{fieldPath{"current", "averageValue"}, "averageValue"},
	},
	"external": {
		{fieldPath{"metric", "name"}, "metricName"},
		{fieldPath{"metric", "selector"}, "metricSelector"},
		{fieldPath{"target", "value"}, "targetValue"},
		{fieldPath{"target", "averageValue"}, "targetAverageValue"},
		{fieldPath{"current", "value"}, "currentValue"},
		{fieldPath{"current", "averageValue"}, "currentAverageValue"},
	},
}

var resourceFields = []metricField{
	{fieldPath{"name"}, "name"},
	{fieldPath{"target", "averageUtilization"}, "targetAverageUtilization"},
	{fieldPath{"target", "averageValue"}, "targetAverageValue"},
	{fieldPath{"current", "averageUtilization"}, "currentAverageUtilization"},
	{fieldPath{"current", "averageValue"}, "currentAverageValue"},
}

// metricToV1 converts a metric or its status.
func metricToV1(metric map[string]any) map[string]any {
	made := map[string]any{"type": metric["type"]}
	for kind, fields := range metricFields {
		from, ok := metric[kind].(map[string]any)
		if !ok {
			continue
		}
		to := map[string]any{}
		for _, f := range fields {
			if value, ok, _ := unstructured.NestedFieldNoCopy(from, f.v2...); ok {
				to[f.v1] = value
			}
		}
		made[kind] = to
	}
	return made
}

// metricFromV1 converts a metric (part is target) or its status (current).
func metricFromV1(metric map[string]any, part string) map[string]any {
	made := map[string]any{"type": metric["type"]}
	other := map[string]string{"target": "current", "current": "target"}[part]
	for kind, fields := range metricFields {
		from, ok := metric[kind].(map[string]any)
		if !ok {
			continue
		}
		to := map[string]any{}
		for _, f := range fields {
			if value, ok := from[f.v1]; ok && (len(f.v2) == 1 || f.v2[0] != other) {
				_ = unstructured.SetNestedField(to, value, f.v2...)
			}
		}
		if part == "target" {
			setTargetType(to)
		}
		made[kind] = to
	}
	return made
}

// setTargetType sets the type of a target, which v1 has not, and drops the zero that v1 can't omit.
func setTargetType(metric map[string]any) {
	target, ok := metric["target"].(map[string]any)
	if !ok {
		target = map[string]any{}
		metric["target"] = target
	}
	value, hasValue := target["value"].(string)
	_, hasAverage := target["averageValue"]
	if q, err := apiresource.ParseQuantity(value); hasValue && hasAverage && err == nil && q.IsZero() {
		delete(target, "value")
		hasValue = false
	}
	_, hasUtilization := target["averageUtilization"]
	_, isObject := metric["describedObject"]
	switch {
	case hasUtilization:
		target["type"] = string(autoscalingv2.UtilizationMetricType)
	case hasValue && !(isObject && hasAverage):
		target["type"] = string(autoscalingv2.ValueMetricType)
	default:
		target["type"] = string(autoscalingv2.AverageValueMetricType)
	}
}

// cpuUtilization returns the utilization in a metric of CPU or in its status, or nil.
func cpuUtilization(metric any, part string) any {
	m, _ := metric.(map[string]any)
	if name, _, _ := unstructured.NestedString(m, "resource", "name"); name != "cpu" {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(m, "resource", part, "averageUtilization")
	return value
}

// metricsToV1 returns metrics as in the annotations of v1, and the utilization of CPU, if there is
// one.
func metricsToV1(metrics any, part string) (others []any, cpu any) {
	list, _ := metrics.([]any)
	for _, one := range list {
		utilization := cpuUtilization(one, part)
		if utilization != nil && (part == "current" || cpu == nil) {
			cpu = utilization
		}
		// The status of CPU has a raw value, too.
		if m, ok := one.(map[string]any); ok && (utilization == nil || part == "current") {
			others = append(others, metricToV1(m))
		}
	}
	return others, cpu
}

// metricsFromV1 returns the metrics of an annotation of v1.
func metricsFromV1(metrics any, part string) (made []any) {
	list, _ := metrics.([]any)
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			made = append(made, metricFromV1(m, part))
		}
	}
	return made
}
