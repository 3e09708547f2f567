package apiserver

import (
	"encoding/json"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The annotations of an HPA of autoscaling/v1 with what this version has no fields for.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	statusesAnnotation   = "autoscaling.alpha.kubernetes.io/current-metrics"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
)

// hpaV1 is autoscaling/v1 of HPAs, which are stored as autoscaling/v2.
func hpaV1() *Version {
	return &Version{
		GroupVersion: schema.GroupVersion{Group: "autoscaling", Version: "v1"}, Status: true,
		FromStored: hpaToV1, ToStored: hpaFromV1,
	}
}

// v1Behavior is the behavior in its annotation, whose names are those of fields in Go.
type v1Behavior struct{ ScaleUp, ScaleDown *v1Rules }

type v1Rules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *string
	Policies                   []struct {
		Type                 string
		Value, PeriodSeconds int32
	}
	Tolerance *apiresource.Quantity
}

// annotate adds an annotation with a value, as JSON of a type.
func annotate[T any](annotations map[string]string, name string, value any) error {
	var typed T
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &typed)
	}
	if err == nil {
		text, err = json.Marshal(typed)
	}
	annotations[name] = string(text)
	return err
}

// annotated removes an annotation, and returns its value by a type, or nil. An annotation that
// can't be read is ignored, as by a real API server.
func annotated[T any](annotations map[string]string, name string) (value any) {
	text, ok := annotations[name]
	delete(annotations, name)
	var typed T
	if !ok || json.Unmarshal([]byte(text), &typed) != nil {
		return nil
	}
	encoded, err := json.Marshal(typed)
	if err != nil || utiljson.Unmarshal(encoded, &value) != nil {
		return nil
	}
	return value
}

// hpaToV1 converts an HPA.
func hpaToV1(hpa map[string]any) (map[string]any, error) {
	u := &unstructured.Unstructured{Object: hpa}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	spec, _ := hpa["spec"].(map[string]any)
	status, _ := hpa["status"].(map[string]any)
	metrics, cpu := metricsToV1(spec["metrics"], "target")
	statuses, used := metricsToV1(status["currentMetrics"], "current")
	conditions, _ := status["conditions"].([]any)
	behavior := spec["behavior"]
	var err error
	if len(metrics) > 0 {
		err = errors.Join(err,
			annotate[[]autoscalingv1.MetricSpec](annotations, metricsAnnotation, metrics))
	}
	if len(statuses) > 0 {
		err = errors.Join(err,
			annotate[[]autoscalingv1.MetricStatus](annotations, statusesAnnotation, statuses))
	}
	if len(conditions) > 0 {
		err = errors.Join(err, annotate[[]autoscalingv1.HorizontalPodAutoscalerCondition](
			annotations, conditionsAnnotation, conditions))
	}
	if behavior != nil {
		err = errors.Join(err, annotate[v1Behavior](annotations, behaviorAnnotation, behavior))
	}
	delete(spec, "metrics")
	delete(spec, "behavior")
	delete(status, "currentMetrics")
	delete(status, "conditions")
	if cpu != nil {
		spec["targetCPUUtilizationPercentage"] = cpu
	}
	if used != nil {
		status["currentCPUUtilizationPercentage"] = used
	}
	u.SetAnnotations(annotations)
	return hpa, err
}

// hpaFromV1 converts an HPA.
func hpaFromV1(hpa map[string]any) (map[string]any, error) {
	u := &unstructured.Unstructured{Object: hpa}
	annotations := u.GetAnnotations()
	if spec, ok := hpa["spec"].(map[string]any); ok {
		metrics := metricsFromV1(
			annotated[[]autoscalingv1.MetricSpec](annotations, metricsAnnotation), "target")
		if cpu := spec["targetCPUUtilizationPercentage"]; cpu != nil {
			metrics = append(metrics, map[string]any{"type": "Resource", "resource": map[string]any{
				"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": cpu},
			}})
		}
		delete(spec, "targetCPUUtilizationPercentage")
		setUnlessEmpty(spec, "metrics", metrics)
		// The names of fields are matched without regard to case.
		behavior := annotated[autoscalingv2.HorizontalPodAutoscalerBehavior](
			annotations, behaviorAnnotation)
		if rules, _ := behavior.(map[string]any); len(rules) > 0 {
			spec["behavior"] = rules
		}
	}
	if status, ok := hpa["status"].(map[string]any); ok {
		statuses := metricsFromV1(
			annotated[[]autoscalingv1.MetricStatus](annotations, statusesAnnotation), "current")
		if used := status["currentCPUUtilizationPercentage"]; used != nil && len(statuses) == 0 {
			statuses = append(statuses, map[string]any{"type": "Resource", "resource": map[string]any{
				"name": "cpu", "current": map[string]any{"averageUtilization": used},
			}})
		}
		delete(status, "currentCPUUtilizationPercentage")
		setUnlessEmpty(status, "currentMetrics", statuses)
		conditions, _ := annotated[[]autoscalingv1.HorizontalPodAutoscalerCondition](
			annotations, conditionsAnnotation).([]any)
		setUnlessEmpty(status, "conditions", conditions)
	}
	delete(annotations, statusesAnnotation)
	delete(annotations, conditionsAnnotation)
	u.SetAnnotations(annotations)
	return hpa, nil
}

func setUnlessEmpty(in map[string]any, field string, list []any) {
	if len(list) > 0 {
		in[field] = list
	}
}
