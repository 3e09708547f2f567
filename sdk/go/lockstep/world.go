package lockstep

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"kube-lockstep.dev/sdk/apiserver"
)

const hpaKind = "HorizontalPodAutoscaler"

var (
	hpaResource = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	podResource = schema.GroupResource{Resource: "pods"}
)

// world makes the changes of a scenario in the API server.
type world struct {
	server    *apiserver.Server
	namespace string
	epoch     time.Time
	templates map[string]*podTemplate
	metrics   *metrics
	faults    faults
	lags      []lag
	due       map[*apiserver.Request]time.Time // of the last event of each watch
	turns     *turns                           // or nil
	hpas      []string                         // the names of all HPAs that were created
	observed  *observed
	// applied are the manifests that were last applied, by resource, namespace and name.
	applied map[string][]byte
	// changed gets the changes that the present change of an object makes.
	changed func(apiserver.Change)
}

func newWorld(s *apiserver.Server, q *openRequest, o *observed) *world {
	w := &world{
		server: s, namespace: q.Namespace, epoch: o.epoch, observed: o,
		templates: map[string]*podTemplate{}, applied: map[string][]byte{},
		due: map[*apiserver.Request]time.Time{},
	}
	s.Changed = func(c apiserver.Change) {
		if w.changed != nil {
			w.changed(c)
		} else {
			o.changed(c, "", "")
		}
	}
	w.metrics = newMetrics(w)
	for _, k := range q.Targets {
		w.serve(k, apiserver.CustomScale)
	}
	for _, k := range q.WithoutScale {
		w.serve(k, nil)
	}
	return w
}

// serve serves a kind of targets, unless it is a built-in kind or Prepare has served it.
func (w *world) serve(k kind, scale *apiserver.Scale) {
	gv := schema.GroupVersion{Group: k.Group, Version: k.Version}
	if r := w.server.Resource(gv.WithResource(k.Resource).GroupResource()); r != nil {
		for _, v := range r.Versions {
			if v.GroupVersion == gv && (v.Scale == nil) == (scale == nil) {
				return
			}
		}
	}
	w.server.Serve(&apiserver.Resource{
		Kind: k.Kind, Plural: k.Resource,
		Versions: []*apiserver.Version{{GroupVersion: gv, Status: true, Scale: scale}},
	})
}

// serveObject serves a kind, as Kind.group, whose objects have metrics, unless it is served already.
func (w *world) serveObject(kind string) {
	gvk := schema.ParseGroupKind(kind).WithVersion("v1")
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	if w.server.Resource(plural.GroupResource()) == nil {
		w.server.Serve(&apiserver.Resource{
			Kind: gvk.Kind, Plural: plural.Resource,
			Versions: []*apiserver.Version{{GroupVersion: gvk.GroupVersion()}},
		})
	}
}

func (w *world) time(d time.Duration) string { return w.epoch.Add(d).UTC().Format(time.RFC3339) }

// fault makes requests wait or fail.
func (w *world) fault(c *apiserver.Request) error {
	if isMetrics(c) && w.faults.SlowMetrics > 0 {
		w.turns.sleep(w.faults.SlowMetrics)
	}
	switch {
	case isMetrics(c) && c.Path[1] == resourceMetrics:
		return w.faults.ListPodMetrics.status()
	case isMetrics(c):
	case c.Subresource == "scale" && c.Verb == "get":
		return w.faults.GetScale.status()
	case c.Subresource == "scale":
		return w.faults.UpdateScale.status()
	case c.Subresource == "status" && requestOf(c) == hpaResource && c.Verb != "get":
		return w.faults.UpdateStatus.status()
	}
	return nil
}

// status is the error as clients get it, or nil.
func (e *apiError) status() error {
	if e == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: e.Code, Reason: metav1.StatusReason(e.Reason),
		Message: e.Message,
	}}
}

// apply makes a change in the namespace of the HPAs. It returns the API server's answer to a write of
// an HPA or another object.
func (w *world) apply(c *change) (answer any, err error) {
	switch {
	case c.CreateHPA != nil:
		content := map[string]any{}
		if err := utiljson.Unmarshal(c.CreateHPA, &content); err != nil {
			return nil, err
		}
		name := (&unstructured.Unstructured{Object: content}).GetName()
		if !slices.Contains(w.hpas, name) {
			w.hpas = append(w.hpas, name)
		}
		stored, err := w.server.Create(hpaResource, w.namespace, content)
		return hpaAnswer(name, stored, err), nil
	case c.PatchHPA != nil:
		stored, err := w.server.MergePatch(hpaResource, w.namespace, c.PatchHPA.Name, c.PatchHPA.Patch)
		return hpaAnswer(c.PatchHPA.Name, stored, err), nil
	case c.DeleteHPA != nil:
		name := c.DeleteHPA.Name
		if err := w.server.Delete(hpaResource, w.namespace, name); err != nil {
			return hpaAnswer(name, nil, err), nil
		}
		return map[string]any{"deleted": map[string]string{"name": name}}, nil
	case c.ApplyObject != nil:
		write, err := w.applyObject(c.ApplyObject)
		return map[string]any{"write": write}, err
	case c.PatchObject != nil:
		write, err := w.patchObject(c.PatchObject)
		return map[string]any{"write": write}, err
	case c.DeleteObject != nil:
		write, err := w.deleteObject(c.DeleteObject)
		return map[string]any{"write": write}, err
	case c.InNamespace != nil && c.InNamespace.Change != nil:
		return nil, w.applyIn(c.InNamespace.Namespace, c.InNamespace.Change)
	}
	return nil, w.applyIn(w.namespace, c)
}

// applyIn makes a change that is not of an HPA.
func (w *world) applyIn(namespace string, c *change) error {
	switch {
	case c.SetScale != nil:
		return w.setScale(namespace, c.SetScale)
	case c.DeleteScale != nil:
		gr := schema.ParseGroupResource(c.DeleteScale.Resource)
		return w.server.Delete(gr, namespace, c.DeleteScale.Name)
	case c.PodTemplate != nil:
		w.templates[c.PodTemplate.Name] = c.PodTemplate
	case c.SetPods != nil:
		for i := range c.SetPods {
			if err := w.setPod(namespace, &c.SetPods[i]); err != nil {
				return err
			}
		}
	case c.DeletePods != nil:
		for _, name := range c.DeletePods {
			if err := w.server.Delete(podResource, namespace, name); err != nil {
				return err
			}
		}
	case c.Faults != nil:
		w.faults = *c.Faults
		w.lags = append(w.lags, lag{time.Now(), w.faults.CacheLag})
	case c.PodMetrics != nil, c.PodsMetric != nil, c.ObjectMetric != nil, c.ExternalMetric != nil:
		w.metrics.apply(namespace, c)
	default:
		return fmt.Errorf("the SDK does not make a change: %+v", c)
	}
	return nil
}

func hpaAnswer(name string, stored map[string]any, err error) any {
	if err != nil {
		return map[string]any{"refused": map[string]string{"name": name, "message": err.Error()}}
	}
	return map[string]any{"stored": map[string]any{
		"name": name, "generation": (&unstructured.Unstructured{Object: stored}).GetGeneration(),
		"spec": stored["spec"],
	}}
}

// setScale creates or changes a target, by the paths of its scale.
func (w *world) setScale(namespace string, c *setScale) error {
	gr := schema.ParseGroupResource(c.Resource)
	r := w.server.Resource(gr)
	if r == nil {
		return fmt.Errorf("setScale: the API server does not serve %s", gr)
	}
	var paths *apiserver.Scale
	for _, v := range r.Versions {
		if v.Scale != nil {
			paths = v.Scale
		}
	}
	if paths == nil {
		return fmt.Errorf("setScale: %s has no scale", gr)
	}
	content := w.server.Get(gr, namespace, c.Name)
	if content == nil {
		content = map[string]any{"metadata": map[string]any{"name": c.Name, "namespace": namespace}}
	}
	selector, err := selectorFor(r, paths, c.Selector)
	if err != nil {
		return err
	}
	set := func(value any, path []string) {
		if err == nil && len(path) > 0 {
			err = unstructured.SetNestedField(content, value, path...)
		}
	}
	if c.Replicas != nil {
		set(*c.Replicas, paths.Replicas)
	}
	set(c.StatusReplicas, paths.StatusReplicas)
	if selector != nil {
		set(selector, paths.Selector)
	}
	if err != nil {
		return err
	}
	return w.server.Put(gr, content)
}

// selectorFor returns a selector as an object stores it: custom resources as text, built-in kinds as
// a structure.
func selectorFor(r *apiserver.Resource, paths *apiserver.Scale, text string) (any, error) {
	if len(paths.Selector) > 0 && paths.Selector[0] == "status" {
		return text, nil
	}
	if text == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, unsupported("the SDK does not support targets with an invalid selector")
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector)
	if r.Kind == "ReplicationController" {
		return content["matchLabels"], err
	}
	return content, err
}
