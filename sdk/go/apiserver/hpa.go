package apiserver

import "k8s.io/apimachinery/pkg/runtime/schema"

// horizontalPodAutoscalers is the only built-in kind with defaults, because autoscalers depend on
// them, and with two versions.
func horizontalPodAutoscalers() *Resource {
	gv := schema.GroupVersion{Group: "autoscaling", Version: "v2"}
	r := resource(gv, "HorizontalPodAutoscaler", "horizontalpodautoscalers", nil, true)
	r.ShortNames = []string{"hpa"}
	r.Versions = append(r.Versions, hpaV1())
	r.Admit = func(_ string, _, after map[string]any) (map[string]any, error) {
		if spec, ok := after["spec"].(map[string]any); ok {
			defaultHPA(spec)
		}
		return after, nil
	}
	return r
}

func defaultHPA(spec map[string]any) {
	setDefault(spec, "minReplicas", int64(1))
	if metrics, _ := spec["metrics"].([]any); len(metrics) == 0 {
		spec["metrics"] = []any{map[string]any{
			"type": "Resource",
			"resource": map[string]any{
				"name":   "cpu",
				"target": map[string]any{"type": "Utilization", "averageUtilization": int64(80)},
			},
		}}
	}
	behavior, ok := spec["behavior"].(map[string]any)
	if !ok {
		return
	}
	percent := map[string]any{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}
	pods := map[string]any{"type": "Pods", "value": int64(4), "periodSeconds": int64(15)}
	up := scalingRules(behavior, "scaleUp", pods, percent)
	setDefault(up, "stabilizationWindowSeconds", int64(0))
	scalingRules(behavior, "scaleDown", percent)
}

func scalingRules(behavior map[string]any, direction string, policies ...any) map[string]any {
	rules, ok := behavior[direction].(map[string]any)
	if !ok {
		rules = map[string]any{}
		behavior[direction] = rules
	}
	setDefault(rules, "selectPolicy", "Max")
	if list, _ := rules["policies"].([]any); len(list) == 0 {
		rules["policies"] = policies
	}
	return rules
}

func setDefault(in map[string]any, field string, value any) {
	if in[field] == nil {
		in[field] = value
	}
}
