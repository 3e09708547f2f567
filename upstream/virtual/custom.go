package virtual

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// customTable holds the responses of custom.metrics.k8s.io and external.metrics.k8s.io. Like the
// rest of the cluster, it changes only while all goroutines are blocked, and needs no lock.
type customTable struct {
	pods      map[string]*podsAnswer
	objects   map[objectMetricKey]*seriesAnswer[customValue]
	externals map[string]*seriesAnswer[externalValue]
}

type objectMetricKey struct {
	metric string
	kind   schema.GroupKind
	name   string
}

// podsAnswer is a metric of pods. Each value has the labels of its pod; the labels of the series
// are the same for all pods.
type podsAnswer struct {
	series labels.Set
	seriesAnswer[customValue]
}

// seriesAnswer is the response for one metric: values with their labels, or an error.
type seriesAnswer[T any] struct {
	labels []labels.Set
	values []T
	err    error
}

func newCustomTable() *customTable {
	return &customTable{
		pods:      map[string]*podsAnswer{},
		objects:   map[objectMetricKey]*seriesAnswer[customValue]{},
		externals: map[string]*seriesAnswer[externalValue]{},
	}
}

func (a *seriesAnswer[T]) add(set labels.Set, value T) {
	a.labels, a.values = append(a.labels, set), append(a.values, value)
}

// list returns the values whose labels match, in their original order.
func (a *seriesAnswer[T]) list(selector labels.Selector) ([]T, error) {
	if a.err != nil {
		return nil, a.err
	}
	selector, err := onTheWire(selector)
	if err != nil {
		return nil, err
	}
	items := make([]T, 0, len(a.values))
	for i, set := range a.labels {
		if selector.Matches(set) {
			items = append(items, a.values[i])
		}
	}
	return items, nil
}

// list returns the values that match by the labels of pods and of series.
func (a *podsAnswer) list(pods, series labels.Selector) ([]customValue, error) {
	items, err := a.seriesAnswer.list(pods)
	if err != nil {
		return nil, err
	}
	if series, err = onTheWire(series); err != nil {
		return nil, err
	}
	if !series.Matches(a.series) {
		return nil, nil
	}
	return items, nil
}

// onTheWire is a selector as the server reads it. Upstream converts an absent selector to a selector
// that matches nothing, but whose text is empty, so that the server matches everything.
func onTheWire(selector labels.Selector) (labels.Selector, error) {
	read, err := labels.Parse(selector.String())
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return read, nil
}

// unknownMetric is the error for a metric without any value.
func unknownMetric(metric, of string) error {
	e := &apiError{
		code:    http.StatusNotFound,
		reason:  string(metav1.StatusReasonNotFound),
		message: "the server could not find the metric " + metric + of,
	}
	return e.statusError()
}

// setPodsMetric applies a change of the response of custom.metrics.k8s.io for a metric of pods.
func (c *namespaced) setPodsMetric(change *podsMetricChange) error {
	answer := &podsAnswer{series: change.labels}
	answer.err = change.err.statusError()
	for i := range change.values {
		v := &change.values[i]
		template, ok := c.templates[v.template]
		if !ok {
			return fmt.Errorf("podsMetric: there is no template %q", v.template)
		}
		value, err := c.metricValue(change.metric, podKind, v.pod, v.value, v.timestamp)
		if err != nil {
			return fmt.Errorf("podsMetric: pod %s: %w", v.pod, err)
		}
		if v.window != nil {
			seconds := int64(*v.window / time.Second)
			value.WindowSeconds = &seconds
		}
		answer.add(template.labels, value)
	}
	c.custom.pods[change.metric] = answer
	return nil
}

var podKind = schema.GroupKind{Kind: "Pod"}

// setObjectMetric applies a change of the response of custom.metrics.k8s.io for a metric of an
// object.
func (c *namespaced) setObjectMetric(change *objectMetricChange) error {
	// Kubernetes 1.9 has no function for kinds.
	kind := schema.ParseGroupResource(change.kind)
	key := objectMetricKey{
		change.metric, schema.GroupKind{Group: kind.Group, Kind: kind.Resource}, change.name,
	}
	answer := &seriesAnswer[customValue]{err: change.err.statusError()}
	for i := range change.series {
		s := &change.series[i]
		value, err := c.metricValue(change.metric, key.kind, change.name, s.value, s.timestamp)
		if err != nil {
			return fmt.Errorf("objectMetric: %s: %w", change.metric, err)
		}
		answer.add(s.labels, value)
	}
	c.custom.objects[key] = answer
	return nil
}

func (c *namespaced) metricValue(
	metric string, kind schema.GroupKind, name, value string, timestamp time.Duration,
) (customValue, error) {
	quantity, err := parseQuantity(value)
	made := customValue{
		DescribedObject: ObjectReference{
			Kind: kind.Kind, Namespace: c.namespace, Name: name,
		},
		Timestamp: c.time(timestamp),
		Value:     quantity,
	}
	nameMetric(&made, metric)
	return made, err
}
