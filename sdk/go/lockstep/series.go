package lockstep

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/apiserver"
)

// external answers external.metrics.k8s.io.
func (m *metrics) external(c *apiserver.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(c.Rest) != 1 {
		return nil, nil
	}
	metric := c.Rest[0]
	of := m.of(c.Namespace).external[metric]
	if of == nil {
		return nil, unknownMetric("the server could not find the metric %s", metric)
	}
	items, err := m.selected(of, c.Query.Get("labelSelector"), func(v *sample, item map[string]any) {
		item["metricName"], item["metricLabels"] = metric, v.Labels
	})
	if err != nil {
		return nil, err
	}
	return answerList(c, "ExternalMetricValueList", items), nil
}

// custom answers custom.metrics.k8s.io: for pods, or for one object.
func (m *metrics) custom(c *apiserver.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []any
	var err error
	switch o, ok := objectOf(m.world.server, c); {
	case ok && o.kind == "Pod" && o.name == "*":
		items, err = m.ofPods(c, o.metric)
	case ok:
		items, err = m.ofObject(c, o)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return answerList(c, "MetricValueList", items), nil
}

// objectOf returns the metric and the object that a path of custom.metrics.k8s.io names.
func objectOf(s *apiserver.Server, c *apiserver.Request) (objectMetric, bool) {
	switch {
	case len(c.Rest) == 2 && c.Rest[0] == "metrics":
		return objectMetric{c.Rest[1], "Namespace", c.Namespace}, true
	case len(c.Rest) == 3:
		gr := schema.ParseGroupResource(c.Rest[0])
		kind := schema.GroupKind{Group: gr.Group, Kind: gr.Resource}
		if r := s.Resource(gr); r != nil {
			kind.Kind = r.Kind
		}
		return objectMetric{c.Rest[2], kind.String(), c.Rest[1]}, true
	}
	return objectMetric{}, false
}

func (m *metrics) ofPods(c *apiserver.Request, metric string) (items []any, err error) {
	of := m.of(c.Namespace).pods[metric]
	if of == nil {
		return nil, unknownMetric("the server could not find the metric %s for pods", metric)
	}
	if of.Error != nil {
		return nil, of.Error.status()
	}
	if ok, err := matches(c.Query.Get("metricLabelSelector"), of.Labels); !ok {
		return []any{}, err
	}
	items = []any{}
	for i := range of.Values {
		v := &of.Values[i]
		ok, err := matches(c.Query.Get("labelSelector"), m.world.labels(v.Template))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		item := map[string]any{
			"describedObject": map[string]any{
				"kind": "Pod", "namespace": c.Namespace, "name": v.Pod, "apiVersion": "/v1",
			},
			"metric":    map[string]any{"name": metric},
			"timestamp": m.world.time(v.Timestamp), "value": v.Value,
		}
		if v.Window != nil {
			item["windowSeconds"] = int64(*v.Window / time.Second)
		}
		items = append(items, item)
	}
	return items, nil
}

func (m *metrics) ofObject(c *apiserver.Request, o objectMetric) ([]any, error) {
	of := m.of(c.Namespace).objects[o]
	if of == nil {
		return nil, unknownMetric(
			"the server could not find the metric %s for %s %s", o.metric, o.kind, o.name)
	}
	kind := schema.ParseGroupKind(o.kind)
	return m.selected(of, c.Query.Get("metricLabelSelector"), func(_ *sample, item map[string]any) {
		item["metric"] = map[string]any{"name": o.metric}
		item["describedObject"] = map[string]any{
			"kind": kind.Kind, "namespace": c.Namespace, "name": o.name,
			"apiVersion": schema.GroupVersion{Group: kind.Group, Version: "v1"}.String(),
		}
	})
}

// selected are the values of the series whose labels match.
func (m *metrics) selected(
	of *seriesMetric, selector string, more func(*sample, map[string]any),
) ([]any, error) {
	if of.Error != nil {
		return nil, of.Error.status()
	}
	items := []any{}
	for i := range of.Series {
		v := &of.Series[i]
		ok, err := matches(selector, v.Labels)
		if err != nil {
			return nil, err
		}
		if ok {
			item := map[string]any{"timestamp": m.world.time(v.Timestamp), "value": v.Value}
			more(v, item)
			items = append(items, item)
		}
	}
	return items, nil
}

// metricsQuery records a query of a metrics API.
func (o *observed) metricsQuery(c *apiserver.Request) {
	if c.Verb != "get" || !isMetrics(c) {
		return
	}
	selector, metricSelector := c.Query.Get("labelSelector"), c.Query.Get("metricLabelSelector")
	q := &query{Error: text(c.Err)}
	if c.Err == nil {
		q.Items = &c.Items
	}
	entry := ""
	switch c.Path[1] {
	case resourceMetrics:
		entry, q.Selector = "listPodMetrics", &selector
	case externalMetrics:
		entry, q.Metric, q.MetricSelector = "externalMetric", c.Rest[0], &selector
	case customMetrics:
		object, ok := objectOf(o.run.Server, c)
		if !ok {
			return
		}
		q.Metric, q.Kind, q.MetricSelector = object.metric, object.kind, &metricSelector
		if object.kind == "Pod" && object.name == "*" {
			entry, q.Selector = "podsMetric", &selector
			break
		}
		entry, q.Name = "objectMetric", object.name
		q.oneValue(c)
	default:
		return
	}
	// Requests for metrics of a namespace itself name none.
	namespace := c.Namespace
	if len(c.Rest) == 2 && c.Rest[0] == "metrics" {
		namespace = ""
	}
	o.record(&namespace, entry, q)
}

// oneValue reports the value of an object's metric: the client requires exactly one.
func (q *query) oneValue(c *apiserver.Request) {
	q.Items = nil
	answer, _ := c.Answer.(map[string]any)
	items, _ := answer["items"].([]any)
	switch {
	case c.Err != nil:
	case len(items) != 1:
		q.Error = fmt.Sprintf("the custom metrics API server returned %d results when we asked for "+
			"exactly one", len(items))
	default:
		value, _ := items[0].(map[string]any)["value"].(string)
		if quantity, err := resource.ParseQuantity(value); err == nil {
			value = quantity.String()
		}
		q.Value = &value
	}
}
