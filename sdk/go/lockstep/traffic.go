package lockstep

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"kube-lockstep.dev/sdk/apiserver"
)

// traffic sees each request of the controller: it makes requests wait or fail, reports them, and
// stops a controller that never rests.
type traffic struct {
	engine   Engine
	world    *world
	observed *observed
	closed   chan struct{}
	// disturber may be nil.
	disturber *disturber

	mu               sync.Mutex
	at               time.Time
	requests, writes int
	restless         error
}

func newTraffic(e Engine, w *world, o *observed) *traffic {
	return &traffic{engine: e, world: w, observed: o, closed: make(chan struct{})}
}

// before makes a request wait or fail.
func (t *traffic) before(c *apiserver.Request) error {
	t.disturber.pace()
	if err := t.count(c); err != nil {
		// The controller would send the next request at once. It waits until the scenario ends.
		<-t.closed
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	select {
	case <-t.closed:
		return apierrors.NewServiceUnavailable("the scenario has ended")
	default:
	}
	t.world.turns.gate(c)
	if err := t.disturber.before(c); err != nil {
		return err
	}
	return t.world.fault(c)
}

func (t *traffic) after(c *apiserver.Request) {
	select {
	case <-t.closed:
	default:
		t.observed.answered(c)
		t.disturber.after(c)
		t.world.turns.leave()
	}
}

func isWrite(c *apiserver.Request) bool {
	return isAnyWrite(c) && (c.Resource == nil || c.Resource.Kind != "Event")
}

func isAnyWrite(c *apiserver.Request) bool {
	switch c.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// count counts the requests of an instant, and fails if there are too many.
func (t *traffic) count(c *apiserver.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now != t.at {
		t.at, t.requests, t.writes = now, 0, 0
	}
	t.requests++
	if isWrite(c) {
		t.writes++
	}
	if t.restless == nil {
		most, what := t.engine.RequestsPerInstant, "requests"
		if t.writes > t.engine.WritesPerInstant {
			most, what = t.engine.WritesPerInstant, "writes"
		} else if t.requests <= most {
			return nil
		}
		t.restless = fmt.Errorf("the controller %s never rests: it sent more than %d %s at t=%s without "+
			"waiting, the last one: %s %s. A reconcile that its own write causes again is the usual reason",
			c.Controller, most, what, t.at.Sub(t.observed.epoch), c.Verb, pathOf(c))
	}
	return t.restless
}

func (t *traffic) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.restless
}

func (t *traffic) close() { close(t.closed) }
