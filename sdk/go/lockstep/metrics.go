package lockstep

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/apiserver"
)

const (
	resourceMetrics = "metrics.k8s.io"
	customMetrics   = "custom.metrics.k8s.io"
	externalMetrics = "external.metrics.k8s.io"
)

func isMetrics(c *apiserver.Request) bool { return c.Resource == nil && len(c.Path) > 3 }

// metrics are the answers of the three metrics APIs.
type metrics struct {
	world *world
	mu    sync.Mutex
	in    map[string]*namespaceMetrics
}

// namespaceMetrics are the metrics in a namespace.
type namespaceMetrics struct {
	timestamp, window time.Duration
	usage             []usage // by pod
	pods, external    map[string]*seriesMetric
	objects           map[objectMetric]*seriesMetric
}

type objectMetric struct{ metric, kind, name string }

func newMetrics(w *world) *metrics {
	m := &metrics{world: w, in: map[string]*namespaceMetrics{}}
	for _, api := range []apiserver.API{
		{
			GroupVersion: schema.GroupVersion{Group: resourceMetrics, Version: "v1beta1"},
			Resources:    []metav1.APIResource{reads("pods", "PodMetrics")}, Answer: m.podMetrics,
		},
		{
			GroupVersion: schema.GroupVersion{Group: customMetrics, Version: "v1beta2"},
			Resources:    []metav1.APIResource{reads("pods/*", "MetricValueList")}, Answer: m.custom,
		},
		{
			GroupVersion: schema.GroupVersion{Group: externalMetrics, Version: "v1beta1"},
			Resources:    []metav1.APIResource{reads("*", "ExternalMetricValueList")}, Answer: m.external,
		},
	} {
		w.server.ServeAPI(api)
	}
	return m
}

func reads(name, kind string) metav1.APIResource {
	return metav1.APIResource{
		Name: name, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list"},
	}
}

func (m *metrics) of(namespace string) *namespaceMetrics {
	n := m.in[namespace]
	if n == nil {
		n = &namespaceMetrics{
			window: time.Minute, pods: map[string]*seriesMetric{}, external: map[string]*seriesMetric{},
			objects: map[objectMetric]*seriesMetric{},
		}
		m.in[namespace] = n
	}
	return n
}

// apply changes the answers.
func (m *metrics) apply(namespace string, c *change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.of(namespace)
	switch {
	case c.PodMetrics != nil:
		n.setUsage(c.PodMetrics)
	case c.PodsMetric != nil:
		n.pods[c.PodsMetric.Metric] = c.PodsMetric
	case c.ObjectMetric != nil:
		o := c.ObjectMetric
		m.world.serveObject(o.Kind)
		n.objects[objectMetric{o.Metric, o.Kind, o.Name}] = o
	case c.ExternalMetric != nil:
		n.external[c.ExternalMetric.Metric] = c.ExternalMetric
	}
}

func (n *namespaceMetrics) find(pod string) (int, bool) {
	return slices.BinarySearchFunc(n.usage, pod, func(u usage, pod string) int {
		return strings.Compare(u.Pod, pod)
	})
}

func (n *namespaceMetrics) setUsage(c *podMetrics) {
	if c.Timestamp != nil {
		n.timestamp = *c.Timestamp
	}
	if c.Window != nil {
		n.window = *c.Window
	}
	for _, pod := range c.Delete {
		if i, ok := n.find(pod); ok {
			n.usage = slices.Delete(n.usage, i, i+1)
		}
	}
	for _, u := range c.Set {
		i, ok := n.find(u.Pod)
		if !ok {
			n.usage = slices.Insert(n.usage, i, usage{})
		}
		n.usage[i] = u
	}
}

// podMetrics answers metrics.k8s.io: with a list, or with one pod.
func (m *metrics) podMetrics(c *apiserver.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Rest[0] != "pods" || len(c.Rest) > 2 {
		return nil, apierrors.NewNotFound(
			schema.GroupResource{Group: resourceMetrics, Resource: c.Rest[0]},
			"",
		)
	}
	n := m.of(c.Namespace)
	if len(c.Rest) == 2 {
		i, ok := n.find(c.Rest[1])
		if !ok {
			return nil, apierrors.NewNotFound(
				schema.GroupResource{Group: resourceMetrics, Resource: "pods"}, c.Rest[1])
		}
		c.Items = 1
		one := m.item(c.Namespace, &n.usage[i])
		one["kind"], one["apiVersion"] = "PodMetrics", "metrics.k8s.io/v1beta1"
		return one, nil
	}
	items := []any{}
	for i := range n.usage {
		ok, err := matches(c.Query.Get("labelSelector"), m.world.labels(n.usage[i].Template))
		if err != nil {
			return nil, err
		}
		if ok {
			items = append(items, m.item(c.Namespace, &n.usage[i]))
		}
	}
	return answerList(c, "PodMetricsList", items), nil
}

func (m *metrics) item(namespace string, u *usage) map[string]any {
	n := m.of(namespace)
	at := n.timestamp
	if u.Timestamp != nil {
		at = *u.Timestamp
	}
	containers := make([]any, len(u.Containers))
	for i, c := range u.Containers {
		used := map[string]string{}
		for _, pair := range c.Usage {
			used[pair[0]] = pair[1]
		}
		containers[i] = map[string]any{"name": c.Name, "usage": used}
	}
	return map[string]any{
		"metadata": map[string]any{
			"name": u.Pod, "namespace": namespace, "labels": m.world.labels(u.Template),
		},
		"timestamp": m.world.time(at), "window": n.window.String(), "containers": containers,
	}
}

func (w *world) labels(template string) map[string]string {
	if t := w.templates[template]; t != nil {
		return t.Labels
	}
	return nil
}

// answerList answers with a list in the version of the request.
func answerList(c *apiserver.Request, kind string, items []any) any {
	c.Items = len(items)
	return map[string]any{
		"kind": kind, "apiVersion": c.Path[1] + "/" + c.Path[2], "metadata": map[string]any{},
		"items": items,
	}
}

func matches(selector string, set map[string]string) (bool, error) {
	s, err := labels.Parse(selector)
	if err != nil {
		return false, apierrors.NewBadRequest(err.Error())
	}
	return s.Matches(labels.Set(set)), nil
}

func unknownMetric(format string, args ...any) error {
	e := &apiError{Code: 404, Reason: "NotFound", Message: fmt.Sprintf(format, args...)}
	return e.status()
}
