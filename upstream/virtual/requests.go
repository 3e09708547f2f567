package virtual

import (
	"encoding/json"
	"errors"
	"time"
)

// request is one line of the input: exactly one of the fields is set.
type request struct {
	open  *openRequest
	step  *stepRequest
	close bool
}

type openRequest struct {
	scenario, namespace string
	flags               flags
	featureGates        map[string]bool
	targets             []target
	withoutScale        []target // known kinds without a scale
	turns               bool     // several reconciles may be due, or in progress, at the same time
	sentEvents          bool     // requests that write events are observed
	allMetrics          bool     // the metrics of the work queue are observed
}

// flags are the flags of the kube-controller-manager that concern the HPA controller.
type flags struct {
	syncPeriod, downscaleStabilization             time.Duration
	cpuInitializationPeriod, initialReadinessDelay time.Duration
	upscaleDelay, downscaleDelay                   time.Duration
	tolerance                                      float64
	workers                                        int
}

// target is a kind that has a scale subresource.
type target struct {
	group, version, kind, resource string
}

type stepRequest struct {
	apply  []change
	during []duringRequest
	until  time.Duration
}

// duringRequest is a list of changes in the middle of a reconcile: right after the response to the
// request with this number among the requests of its kind in the step.
type duringRequest struct {
	after  entryKind
	number int
	apply  []change
}

// change is world::Change of the Rust source: exactly one of the fields is set.
type change struct {
	createHPA      json.RawMessage
	patchHPA       *patchHPA
	deleteHPA      string
	setScale       *setScale
	deleteScale    *deleteScale
	podTemplate    *podTemplate
	setPods        []podState
	deletePods     []string
	podMetrics     *podMetricsChange
	podsMetric     *podsMetricChange
	objectMetric   *objectMetricChange
	externalMetric *externalMetricChange
	faults         *faults
	restart        bool
	inNamespace    *inNamespace
}

// inNamespace is a change of pods, scales or metrics in another namespace than that of the HPAs.
type inNamespace struct {
	namespace string
	change    *change
}

type patchHPA struct {
	name  string
	patch json.RawMessage
}

type setScale struct {
	resource, name, selector string
	replicas                 *int32
	statusReplicas           int32
}

type deleteScale struct{ resource, name string }

type podTemplate struct {
	name                       string
	labels                     map[string]string
	containers, initContainers []container
	requests, overhead         map[string]string // of the pod; requests may be nil
}

type container struct {
	name     string
	requests map[string]string
	sidecar  bool
}

type podState struct {
	name, template, phase        string
	startTime, deletionTimestamp *time.Duration
	ready                        *podReady
}

type podReady struct {
	status             string
	lastTransitionTime time.Duration
}

type faults struct {
	listPodMetrics, getScale, updateScale, updateStatus *apiError
	slowMetrics                                         time.Duration
	cacheLag                                            time.Duration // of the controller's caches
}

type apiError struct {
	code            int32
	reason, message string
}

func parseRequest(line []byte) (request, error) {
	r := &reader{data: line}
	var q request
	r.object(func(key string) {
		switch key {
		case "open":
			q.open = r.open()
		case "step":
			q.step = r.step()
		case "close":
			r.skip()
			q.close = true
		default:
			r.unknown(key)
		}
	})
	if err := r.end(); err != nil {
		return request{}, err
	}
	if q.open == nil && q.step == nil && !q.close {
		return request{}, errors.New("neither open nor step nor close")
	}
	return q, nil
}

func (r *reader) open() *openRequest {
	q := &openRequest{featureGates: map[string]bool{}}
	r.object(func(key string) {
		switch key {
		case "scenario":
			q.scenario = r.str()
		case "namespace":
			q.namespace = r.str()
		case "flags":
			q.flags = r.flags()
		case "featureGates":
			r.object(func(gate string) { q.featureGates[gate] = r.bool() })
		case "targets":
			r.array(func() { q.targets = append(q.targets, r.target()) })
		case "withoutScale":
			r.array(func() { q.withoutScale = append(q.withoutScale, r.target()) })
		case "turns":
			q.turns = r.bool()
		case "sentEvents":
			q.sentEvents = r.bool()
		case "allMetrics":
			q.allMetrics = r.bool()
		default:
			r.unknown(key)
		}
	})
	return q
}

func (r *reader) flags() flags {
	var f flags
	seen := map[string]bool{}
	r.object(func(key string) {
		seen[key] = true
		switch key {
		case "sync-period":
			f.syncPeriod = r.duration()
		case "downscale-stabilization":
			f.downscaleStabilization = r.duration()
		case "tolerance":
			f.tolerance = r.float()
		case "cpu-initialization-period":
			f.cpuInitializationPeriod = r.duration()
		case "initial-readiness-delay":
			f.initialReadinessDelay = r.duration()
		case "upscale-delay":
			f.upscaleDelay = r.duration()
		case "downscale-delay":
			f.downscaleDelay = r.duration()
		case "concurrent-horizontal-pod-autoscaler-syncs":
			f.workers = int(r.int32())
		default:
			r.unknown(key)
		}
	})
	if len(seen) != 8 {
		r.fail("flags are missing")
	}
	return f
}

func (r *reader) target() target {
	var t target
	r.object(func(key string) {
		switch key {
		case "group":
			t.group = r.str()
		case "version":
			t.version = r.str()
		case "kind":
			t.kind = r.str()
		case "resource":
			t.resource = r.str()
		default:
			r.unknown(key)
		}
	})
	return t
}

func (r *reader) step() *stepRequest {
	q := &stepRequest{until: -1}
	r.object(func(key string) {
		switch key {
		case "apply":
			q.apply = r.changes()
		case "during":
			r.array(func() { q.during = append(q.during, r.during()) })
		case "until":
			q.until = r.duration()
		default:
			r.unknown(key)
		}
	})
	return q
}

// requestKinds are the names of the requests in the log that changes can follow.
var requestKinds = map[string]entryKind{
	"getScale":       getScale,
	"listPodMetrics": listPodMetrics,
	"podsMetric":     podsMetric,
	"objectMetric":   objectMetric,
	"externalMetric": externalMetric,
	"updateScale":    updateScale,
	"updateStatus":   updateStatus,
}

func (r *reader) during() duringRequest {
	var d duringRequest
	r.fields(map[string]func(){
		"after": func() {
			name := r.str()
			kind, ok := requestKinds[name]
			if !ok {
				r.fail("during: unknown request " + name)
			}
			d.after = kind
		},
		"number": func() { d.number = int(r.int32()) },
		"apply":  func() { d.apply = r.changes() },
	})
	if d.number < 1 {
		r.fail("during: number must be positive")
	}
	return d
}

func (r *reader) inNamespace() *inNamespace {
	in := &inNamespace{}
	r.object(func(key string) {
		switch key {
		case "namespace":
			in.namespace = r.str()
		case "change":
			in.change = &change{}
			r.change(in.change)
		default:
			r.unknown(key)
		}
	})
	if in.change == nil {
		r.fail("inNamespace has no change")
	}
	return in
}

func (r *reader) changes() (list []change) {
	r.array(func() {
		list = append(list, change{})
		r.change(&list[len(list)-1])
	})
	return list
}

func (r *reader) change(c *change) {
	if r.peek() == '"' {
		if name := r.str(); name == "restartController" {
			c.restart = true
		} else {
			r.unknown(name)
		}
		return
	}
	r.object(func(key string) {
		switch key {
		case "inNamespace":
			c.inNamespace = r.inNamespace()
		case "createHpa":
			c.createHPA = r.raw()
		case "patchHpa":
			c.patchHPA = &patchHPA{}
			r.fields(map[string]func(){
				"name":  func() { c.patchHPA.name = r.str() },
				"patch": func() { c.patchHPA.patch = r.raw() },
			})
		case "deleteHpa":
			r.fields(map[string]func(){"name": func() { c.deleteHPA = r.str() }})
		case "setScale":
			c.setScale = r.setScale()
		case "deleteScale":
			c.deleteScale = &deleteScale{}
			r.fields(map[string]func(){
				"resource": func() { c.deleteScale.resource = r.str() },
				"name":     func() { c.deleteScale.name = r.str() },
			})
		case "podTemplate":
			c.podTemplate = r.podTemplate()
		case "setPods":
			c.setPods = []podState{}
			r.array(func() { c.setPods = append(c.setPods, r.podState()) })
		case "deletePods":
			c.deletePods = r.strings()
		case "podMetrics":
			c.podMetrics = r.podMetrics()
		case "podsMetric":
			c.podsMetric = r.podsMetric()
		case "objectMetric":
			c.objectMetric = r.objectMetric()
		case "externalMetric":
			c.externalMetric = r.externalMetric()
		case "faults":
			c.faults = r.faults()
		default:
			r.unknown(key)
		}
	})
}

// fields is object with a table, for code whose speed does not matter.
func (r *reader) fields(members map[string]func()) {
	r.object(func(key string) {
		if member, ok := members[key]; ok {
			member()
		} else {
			r.unknown(key)
		}
	})
}

func (r *reader) setScale() *setScale {
	s := &setScale{}
	r.object(func(key string) {
		switch key {
		case "resource":
			s.resource = r.str()
		case "name":
			s.name = r.str()
		case "replicas":
			n := r.int32()
			s.replicas = &n
		case "statusReplicas":
			s.statusReplicas = r.int32()
		case "selector":
			s.selector = r.str()
		default:
			r.unknown(key)
		}
	})
	return s
}

func (r *reader) podTemplate() *podTemplate {
	t := &podTemplate{}
	r.fields(map[string]func(){
		"name":   func() { t.name = r.str() },
		"labels": func() { t.labels = r.stringMap() },
		"spec": func() {
			r.fields(map[string]func(){
				"containers":     func() { t.containers = r.containers() },
				"initContainers": func() { t.initContainers = r.containers() },
				"requests":       func() { t.requests = r.stringMap() },
				"overhead":       func() { t.overhead = r.stringMap() },
			})
		},
	})
	return t
}

func (r *reader) containers() (list []container) {
	r.array(func() {
		var c container
		r.fields(map[string]func(){
			"name":     func() { c.name = r.str() },
			"requests": func() { c.requests = r.stringMap() },
			"sidecar":  func() { c.sidecar = r.bool() },
		})
		list = append(list, c)
	})
	return list
}

func (r *reader) podState() podState {
	var p podState
	r.object(func(key string) {
		switch key {
		case "name":
			p.name = r.str()
		case "template":
			p.template = r.str()
		case "phase":
			p.phase = r.str()
		case "startTime":
			p.startTime = r.durationPointer()
		case "deletionTimestamp":
			p.deletionTimestamp = r.durationPointer()
		case "ready":
			p.ready = r.podReady()
		default:
			r.unknown(key)
		}
	})
	return p
}

func (r *reader) podReady() *podReady {
	p := &podReady{}
	r.object(func(key string) {
		switch key {
		case "status":
			p.status = r.str()
		case "lastTransitionTime":
			p.lastTransitionTime = r.duration()
		default:
			r.unknown(key)
		}
	})
	return p
}

func (r *reader) faults() *faults {
	f := &faults{}
	r.fields(map[string]func(){
		"listPodMetrics": func() { f.listPodMetrics = r.apiError() },
		"getScale":       func() { f.getScale = r.apiError() },
		"updateScale":    func() { f.updateScale = r.apiError() },
		"updateStatus":   func() { f.updateStatus = r.apiError() },
		"slowMetrics":    func() { f.slowMetrics = r.duration() },
		"cacheLag":       func() { f.cacheLag = r.duration() },
	})
	return f
}

func (r *reader) apiError() *apiError {
	e := &apiError{}
	r.fields(map[string]func(){
		"code":    func() { e.code = r.int32() },
		"reason":  func() { e.reason = r.str() },
		"message": func() { e.message = r.str() },
	})
	return e
}

func (r *reader) strings() []string {
	list := []string{}
	r.array(func() { list = append(list, r.str()) })
	return list
}

func (r *reader) stringMap() map[string]string {
	m := map[string]string{}
	r.object(func(key string) { m[key] = r.str() })
	return m
}

func (r *reader) duration() time.Duration { return time.Duration(r.int64()) }

func (r *reader) durationPointer() *time.Duration {
	d := r.duration()
	return &d
}
