package lockstep

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/apiserver"
)

// observed collects the actions of the controller in a step.
type observed struct {
	epoch      time.Time
	run        *Run
	sentEvents bool
	turns      *turns // or nil
	objects    bool   // changes of objects are recorded

	mu      sync.Mutex
	entries []entry
	settled int           // how many entries are in their final order
	last    time.Duration // the time of the last entry that is not a metric
	muted   bool          // the controller has crashed: what it still does has no effect
	acted   bool          // there is such an entry since the metrics were recorded
}

// begin forgets the entries of the previous step. The changes of objects before t=0 remain.
func (o *observed) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	var kept []entry
	for _, e := range o.entries {
		if e.at < 0 && e.kind == "write" {
			e.at = 0
			kept = append(kept, e)
		}
	}
	o.entries, o.settled = kept, len(kept)
}

func (o *observed) log() []entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries == nil {
		return []entry{}
	}
	return o.entries
}

func (o *observed) mute(muted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.muted = muted
}

// record records an action. Only requests have a namespace.
func (o *observed) record(namespace *string, kind string, body any) {
	present := o.turns.present()
	o.add(namespace, kind, body, present)
	if present != nil && namespace != nil {
		o.turns.recorded(kind)
	}
}

func (o *observed) add(namespace *string, kind string, body any, present *turn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.muted {
		return
	}
	now := time.Since(o.epoch)
	switch {
	case present != nil:
		present.acted = true
	case o.turns == nil && now > o.last:
		o.metrics(nil)
	}
	o.last, o.acted = now, true
	o.entries = append(o.entries, entry{now, namespace, kind, body, present})
}

// finish records the end of a reconcile.
func (o *observed) finish(one *turn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.acted = time.Since(o.epoch), true
	o.metrics(one)
	o.entries = append(o.entries, entry{o.last, nil, "reconciled", nil, one})
}

// metrics records the changes of the controller's own metrics up to the last entry.
func (o *observed) metrics(of *turn) {
	if o.run.Metrics == nil || !o.acted {
		return
	}
	for _, change := range o.run.Metrics() {
		o.acted = false
		o.entries = append(o.entries, entry{o.last, nil, "controllerMetric", change, of})
	}
}

// settle orders the entries since the last call: at each instant, requests and errors precede the
// controller's metrics, and these precede events, which another goroutine sends.
func (o *observed) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.turns == nil {
		o.metrics(nil)
	}
	rank := func(e entry) int { return max(0, slices.Index(late, e.kind)) }
	slices.SortStableFunc(o.entries[o.settled:], func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), rank(a)-rank(b))
	})
	if o.turns != nil {
		o.entries = append(o.entries[:o.settled:o.settled], o.turns.marked(o.entries[o.settled:])...)
	}
	o.settled = len(o.entries)
}

// late are the kinds of entries that follow the other entries of an instant.
var late = []string{"", "controllerMetric", "reconciled", "event", "sendEvent"}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func requestOf(c *apiserver.Request) schema.GroupResource {
	if c.Resource == nil {
		return schema.GroupResource{}
	}
	return c.Resource.GroupResource()
}

func pathOf(c *apiserver.Request) string { return "/" + strings.Join(c.Path, "/") }

// answered records a request. Requests that the protocol has no entry for are not recorded.
func (o *observed) answered(c *apiserver.Request) {
	if c.Resource == nil {
		o.metricsQuery(c)
		return
	}
	if o.objects && isAnyWrite(c) {
		defer o.objectWrites(c)
	}
	isWrite := c.Verb == "update" || c.Verb == "patch"
	switch {
	case c.Subresource == "scale" && c.Verb == "get":
		o.scaleRead(c)
	case isWrite && (c.Subresource == "scale" || c.Subresource == "" && scaleOf(c) != nil):
		o.scaleWrite(c)
	case isWrite && c.Subresource == "status" && requestOf(c) == hpaResource:
		o.statusWrite(c)
	case c.Resource.Kind == "Event" && c.Err == nil && (c.Verb == "create" || c.Verb == "patch"):
		o.event(c)
	}
}

func scaleOf(c *apiserver.Request) *apiserver.Scale {
	if c.Version == nil {
		return nil
	}
	return c.Version.Scale
}

func number(content map[string]any, path []string) int64 {
	n, _, _ := unstructured.NestedInt64(content, path...)
	return n
}

func (o *observed) scaleRead(c *apiserver.Request) {
	e := &scaleRead{Resource: requestOf(c).String(), Name: c.Name, Error: text(c.Err)}
	if c.Err == nil {
		replicas := number(c.Object, c.Version.Scale.Replicas)
		status := number(c.Object, c.Version.Scale.StatusReplicas)
		e.Replicas, e.StatusReplicas = &replicas, &status
	}
	o.record(&c.Namespace, "getScale", e)
}

// scaleWrite records a write of the scale, or of an object if it changes the replicas.
func (o *observed) scaleWrite(c *apiserver.Request) {
	e := &scaleWrite{
		Resource: requestOf(c).String(), Name: c.Name, APIVersion: "autoscaling/v1", Error: text(c.Err),
	}
	var sent struct {
		Spec   struct{ Replicas int64 }
		Status struct {
			Replicas int64
			Selector any
		}
	}
	_ = json.Unmarshal(c.Body, &sent)
	e.Replicas, e.StatusReplicas = sent.Spec.Replicas, sent.Status.Replicas
	e.Selector, _ = sent.Status.Selector.(string)
	if c.Subresource == "" {
		if c.Err != nil || c.Before == nil {
			return
		}
		e.APIVersion = c.Version.String()
		e.StatusReplicas = number(c.Object, c.Version.Scale.StatusReplicas)
		if number(c.Object, c.Version.Scale.Replicas) == number(c.Before, c.Version.Scale.Replicas) {
			return
		}
	}
	if c.Err == nil {
		e.Replicas = number(c.Object, c.Version.Scale.Replicas)
	}
	o.record(&c.Namespace, "updateScale", e)
}

func (o *observed) statusWrite(c *apiserver.Request) {
	e := &statusWrite{Name: c.Name, APIVersion: c.Version.String(), Error: text(c.Err)}
	if c.Err == nil {
		e.Status = c.Object["status"]
	} else {
		var sent struct{ Status any }
		_ = json.Unmarshal(c.Body, &sent)
		e.Status = sent.Status
	}
	if e.Status == nil {
		e.Status = map[string]any{}
	}
	o.record(&c.Namespace, "updateStatus", e)
}

// event records an event on an HPA, as the API server gets it: after client-go has combined and
// limited the events.
func (o *observed) event(c *apiserver.Request) {
	field := func(path ...string) string {
		s, _, _ := unstructured.NestedString(c.Object, path...)
		return s
	}
	if field("involvedObject", "kind") != hpaKind {
		return
	}
	e := event{
		HPA: field("involvedObject", "name"), Type: field("type"), Reason: field("reason"),
		Message: field("message"),
	}
	o.record(nil, "event", e)
	if !o.sentEvents {
		return
	}
	o.record(&c.Namespace, "sendEvent", &sentEvent{
		event: e, Verb: c.Verb, Count: max(1, number(c.Object, []string{"count"})),
		ObjectKind: hpaKind, ObjectAPIVersion: field("involvedObject", "apiVersion"),
		ObjectUID: field("involvedObject", "uid"),
		Component: cmp.Or(field("source", "component"), field("reportingComponent")),
		EventName: field("metadata", "name"),
		// Events of events.k8s.io have one time, in microseconds.
		FirstTimestamp: inSeconds(field("firstTimestamp"), field("eventTime")),
		LastTimestamp: inSeconds(field("lastTimestamp"), field("series", "lastObservedTime"),
			field("eventTime")),
	})
}

// inSeconds returns the first time that is set, in whole seconds.
func inSeconds(times ...string) string {
	t, err := time.Parse(time.RFC3339Nano, cmp.Or(times...))
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
