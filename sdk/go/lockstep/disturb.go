package lockstep

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"kube-lockstep.dev/sdk/apiserver"
)

// disturbance is an input of a run that a cluster leaves to chance: one of the fields is set.
type disturbance struct {
	Hold   *hold
	Answer *struct {
		Write int
		With  string
	}
	Crash *struct {
		Write int
		When  string
	}
}

// hold is an event of a watch that is delivered late.
type hold struct {
	Resource     string
	Watch, Event int
	Delay        time.Duration
}

// disturbable is what can be disturbed in a run.
type disturbable struct {
	Watches []*watchSeen `json:"watches"`
	Writes  []*writeSeen `json:"writes"`
}

type watchSeen struct {
	Resource   string      `json:"resource"`
	Controller string      `json:"controller"`
	Events     []eventSeen `json:"events"`
	number     int
}

type eventSeen struct {
	At   time.Duration `json:"at"`
	Type string        `json:"type"`
	Name string        `json:"name"`
}

type writeSeen struct {
	At          time.Duration `json:"at"`
	Controller  string        `json:"controller"`
	Verb        string        `json:"verb"`
	Resource    string        `json:"resource"`
	Subresource string        `json:"subresource,omitempty"`
	Name        string        `json:"name"`
}

// disturber disturbs a scenario, and remembers what could be disturbed. If it is nil, nothing is.
type disturber struct {
	list       []disturbance
	controller string // whose requests are disturbed
	observed   *observed
	// crashed receives a value when the controller has crashed.
	crashed chan struct{}

	mu      sync.Mutex
	seen    disturbable
	watches map[*apiserver.Request]*watchSeen
	pending map[*apiserver.Request]int // the numbers of the writes that are not yet answered
	life    *life
	// heldUntil is the end of the last hold so far, and requests is the number of those at an instant.
	heldUntil, instant time.Time
	requests           int
	isSlow             bool // each request takes a millisecond
}

// newDisturber returns nil if the scenario is not to be disturbed.
func newDisturber(list []disturbance, controller string, o *observed) *disturber {
	if list == nil {
		return nil
	}
	return &disturber{
		list: list, controller: controller, observed: o, crashed: make(chan struct{}, 1),
		seen:    disturbable{Watches: []*watchSeen{}, Writes: []*writeSeen{}},
		watches: map[*apiserver.Request]*watchSeen{}, pending: map[*apiserver.Request]int{},
	}
}

// isDisturbed returns false for requests that are left out: those of other clients than the
// controller's, and those of events and of leases, which are many and rarely matter.
func (d *disturber) isDisturbed(c *apiserver.Request) bool {
	return c.Controller == d.controller && c.Resource != nil && c.Resource.Kind != "Event" &&
		c.Resource.Kind != "Lease"
}

// before counts a request, and makes it fail if it is disturbed.
func (d *disturber) before(c *apiserver.Request) error {
	if d == nil || !d.isDisturbed(c) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Verb == "watch" {
		d.watch(c)
		return nil
	}
	if !isWrite(c) {
		return nil
	}
	d.seen.Writes = append(d.seen.Writes, &writeSeen{
		At: d.now(), Controller: c.Controller, Verb: c.Verb, Resource: requestOf(c).String(),
		Subresource: c.Subresource, Name: nameOf(c),
	})
	number := len(d.seen.Writes)
	if d.crashes(number, "before") {
		return d.crash()
	}
	switch d.answer(number) {
	case "conflict":
		return apierrors.NewConflict(requestOf(c), c.Name, errors.New("the object has been modified; "+
			"please apply your changes to the latest version and try again (disturbed)"))
	case "internalError":
		return apierrors.NewInternalError(errors.New("the request is disturbed"))
	case "unavailable":
		return apierrors.NewServiceUnavailable("the request is disturbed")
	}
	d.pending[c] = number
	return nil
}

// fastRequests is the number of requests at one instant after which each request takes time while an
// event is held.
const fastRequests = 100

// pace lets time pass if there are many requests while an event is held. A controller that acts until
// it sees the event would otherwise act forever.
func (d *disturber) pace() {
	if d == nil {
		return
	}
	d.mu.Lock()
	now := time.Now()
	if now != d.instant {
		d.instant, d.requests = now, 0
	}
	d.requests++
	d.isSlow = now.Before(d.heldUntil) && (d.isSlow || d.requests > fastRequests)
	isSlow := d.isSlow
	d.mu.Unlock()
	if isSlow {
		time.Sleep(time.Millisecond)
	}
}

// after loses the answer to a write, or stops the controller before it gets the answer.
func (d *disturber) after(c *apiserver.Request) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	number := d.pending[c]
	delete(d.pending, c)
	switch {
	case number == 0:
	case d.crashes(number, "after"):
		c.Err = d.crash()
	case c.Err == nil && d.answer(number) == "timeout":
		c.Err = apierrors.NewTimeoutError("the answer is lost: the request is disturbed", 0)
	}
}

// delay is how late an event of a watch is delivered.
func (d *disturber) delay(e apiserver.WatchEvent) time.Duration {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.watches[e.Watch]
	if w == nil {
		return 0
	}
	w.Events = append(w.Events, eventSeen{e.At.Sub(d.observed.epoch), e.Type, e.Name})
	for _, o := range d.list {
		if h := o.Hold; h != nil && h.Resource == w.Resource && h.Watch == w.number &&
			h.Event == e.Number {
			if until := e.At.Add(h.Delay); until.After(d.heldUntil) {
				d.heldUntil = until
			}
			return h.Delay
		}
	}
	return 0
}

// watch numbers a watch among those of its resource.
func (d *disturber) watch(c *apiserver.Request) {
	w := &watchSeen{
		Resource: requestOf(c).String(), Controller: c.Controller, Events: []eventSeen{}, number: 1,
	}
	for _, o := range d.seen.Watches {
		if o.Resource == w.Resource {
			w.number++
		}
	}
	d.seen.Watches = append(d.seen.Watches, w)
	d.watches[c] = w
}

func (d *disturber) crashes(write int, when string) bool {
	return slices.ContainsFunc(d.list, func(o disturbance) bool {
		return o.Crash != nil && o.Crash.Write == write && o.Crash.When == when
	})
}

func (d *disturber) answer(write int) string {
	for _, o := range d.list {
		if o.Answer != nil && o.Answer.Write == write {
			return o.Answer.With
		}
	}
	return ""
}

// crash stops the controller: from now on, none of its requests reaches the API server. The session
// starts another one.
func (d *disturber) crash() error {
	d.life.ended.Store(true)
	d.observed.mute(true)
	select {
	case d.crashed <- struct{}{}:
	default:
	}
	return errCrashed
}

// signal is the channel of crashes, or nil.
func (d *disturber) signal() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.crashed
}

// hasCrashed returns true once after a crash.
func (d *disturber) hasCrashed() bool {
	select {
	case <-d.signal():
		return true
	default:
		return false
	}
}

func (d *disturber) now() time.Duration { return time.Since(d.observed.epoch) }

// closed is the content of the answer to the end of the scenario.
func (d *disturber) closed() any {
	if d == nil {
		return struct{}{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return map[string]any{"disturbable": d.seen}
}

// nameOf is the name of the object that a request writes. The object that is created has it in its
// body.
func nameOf(c *apiserver.Request) string {
	var sent struct {
		Metadata struct{ Name, GenerateName string }
	}
	if c.Name != "" || json.Unmarshal(c.Body, &sent) != nil {
		return c.Name
	}
	return sent.Metadata.Name + sent.Metadata.GenerateName
}

// begin begins the life of a controller that is about to start. Clients that were made before have
// another life.
func (s *session) begin() {
	d := s.disturber
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life = &life{}
	s.run.life = d.life
	s.run.Config = s.run.ConfigFor(s.engine.Name)
	d.observed.mute(false)
}

// crash starts a new controller after a crash. The old one may take its time to end: its requests
// fail.
func (s *session) crash() {
	s.turns.end()
	s.cancel()
	synctest.Wait()
	if s.turns != nil {
		s.takeTurns()
	}
	s.start()
}

// wait waits until all goroutines are blocked at the current time.
func (s *session) wait() {
	synctest.Wait()
	for s.disturber.hasCrashed() {
		s.crash()
		synctest.Wait()
	}
}

var errCrashed = errors.New("the controller has crashed")

// life is the time from a start of the controller to its crash. Afterwards, its goroutines may still
// run for a while.
type life struct{ ended atomic.Bool }

// check ends the calling goroutine if the controller has crashed.
func (l *life) check() {
	if l.ended.Load() {
		runtime.Goexit()
	}
}

// mortal sends requests until its controller crashes. Then the goroutine that sends one ends, with its
// deferred calls: the rest of its code would not run after a crash, such as what a controller does with
// an error.
type mortal struct {
	http.RoundTripper
	life *life
}

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.life.check()
	answer, err := m.RoundTripper.RoundTrip(r)
	m.life.check() // before the answer
	return answer, err
}
