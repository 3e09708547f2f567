package lockstep

import "fmt"

// setPod creates or replaces a pod.
func (w *world) setPod(namespace string, p *podState) error {
	t, ok := w.templates[p.Template]
	if !ok {
		return fmt.Errorf("setPods: there is no template %q", p.Template)
	}
	meta := map[string]any{
		"name": p.Name, "namespace": namespace, "labels": anyMap(t.Labels),
	}
	spec := map[string]any{"containers": containers(t.Spec.Containers)}
	if t.Spec.InitContainers != nil {
		spec["initContainers"] = containers(t.Spec.InitContainers)
	}
	if t.Spec.Requests != nil {
		spec["resources"] = map[string]any{"requests": anyMap(t.Spec.Requests)}
	}
	if t.Spec.Overhead != nil {
		spec["overhead"] = anyMap(t.Spec.Overhead)
	}
	status := map[string]any{"phase": p.Phase}
	if p.StartTime != nil {
		status["startTime"] = w.time(*p.StartTime)
	}
	if p.DeletionTimestamp != nil {
		meta["deletionTimestamp"] = w.time(*p.DeletionTimestamp)
	}
	if p.Ready != nil {
		status["conditions"] = []any{map[string]any{
			"type": "Ready", "status": p.Ready.Status,
			"lastTransitionTime": w.time(p.Ready.LastTransitionTime),
		}}
	}
	return w.server.Put(podResource, map[string]any{"metadata": meta, "spec": spec, "status": status})
}

func containers(list []container) []any {
	made := make([]any, 0, len(list))
	for _, c := range list {
		m := map[string]any{"name": c.Name}
		if len(c.Requests) > 0 {
			m["resources"] = map[string]any{"requests": anyMap(c.Requests)}
		}
		if c.Sidecar {
			m["restartPolicy"] = "Always"
		}
		made = append(made, m)
	}
	return made
}

func anyMap(m map[string]string) map[string]any {
	made := make(map[string]any, len(m))
	for k, v := range m {
		made[k] = v
	}
	return made
}
