package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// session is one scenario: a cluster with a running controller, in its own bubble.
type session struct {
	flags    flags
	mapper   meta.RESTMapper
	ctx      context.Context
	observed *observed
	cluster  *cluster
	byTurns  bool
	turns    *turns // the queue of serialized workers, or nil
	stop     func() // the controller
	// The API server's answers in this step, and why it failed in the middle of a reconcile.
	answers   []apiAnswer
	failed    error
	during    []duringRequest // what happens in the middle of reconciles in this step
	gatesBack func()
}

// openSession starts the controller and lets time pass until t=0, a whole minute.
//
// The informers resync once per sync period after the controller's start. The start is chosen so
// that resyncs are halfway between the reconciles of an HPA that is created at t=0, because the
// order of two actions at the same time would be random.
func openSession(q *openRequest) (*session, error) {
	if q.flags.syncPeriod <= 0 || q.flags.workers < 1 {
		return nil, errors.New(
			"sync-period and concurrent-horizontal-pod-autoscaler-syncs must be positive")
	}
	gatesBack, err := setFeatureGates(q.featureGates)
	if err != nil {
		return nil, err
	}
	lead := q.flags.syncPeriod / 2
	for lead < time.Second {
		lead += q.flags.syncPeriod
	}
	epoch := time.Now().Add(lead).Truncate(time.Minute).Add(time.Minute)
	o := &observed{epoch: epoch, byTurns: q.turns, allMetrics: q.allMetrics}
	if q.allMetrics {
		queueSeries.provide()
	}
	s := &session{
		flags:     q.flags,
		mapper:    newMapper(slices.Concat(q.targets, q.withoutScale)),
		ctx:       listen(o),
		observed:  o,
		cluster:   newCluster(q.namespace, o),
		gatesBack: gatesBack,
		byTurns:   q.turns,
	}
	s.cluster.sentEvents = q.sentEvents
	for _, kind := range q.withoutScale {
		s.cluster.withoutScale[schema.GroupResource{Group: kind.group, Resource: kind.resource}] = true
	}
	present.Store(o)
	time.Sleep(time.Until(epoch) - lead)
	s.start()
	time.Sleep(lead)
	synctest.Wait()
	return s, nil
}

// start starts a controller.
func (s *session) start() {
	retryWait(s.byTurns)
	if s.byTurns {
		s.turns = newTurns(s.observed)
		s.cluster.turns = s.turns
		s.observed.requested = s.turns.requested
		s.turns.stepBegins(s.during)
	}
	s.stop = startController(s.ctx, s.cluster, s.flags, s.mapper, s.turns)
}

// wait waits until all goroutines are blocked at the current time.
func (s *session) wait() {
	synctest.Wait()
	for s.turns != nil && (s.interrupt() || s.turns.queueResyncs() || s.turns.next()) {
		synctest.Wait()
	}
}

// interrupt applies the changes that a worker waits for in the middle of its reconcile, and resumes
// it when the controller's informers have received them.
func (s *session) interrupt() bool {
	p := s.turns.paused()
	if p == nil {
		return false
	}
	for i := range p.apply {
		change := &p.apply[i]
		if change.restart {
			s.failed = errors.New("the controller can't be restarted in the middle of a reconcile")
		} else if answer, ok := s.cluster.write(change); ok {
			s.answers = append(s.answers, answer)
		} else if err := s.cluster.apply(change); err != nil {
			s.failed = err
		}
		synctest.Wait()
	}
	close(p.resume)
	return true
}

// pass lets time pass. Meanwhile, each waiting worker proceeds at its time.
func (s *session) pass(span time.Duration) {
	if s.turns == nil {
		time.Sleep(span)
		return
	}
	end := time.NewTimer(span)
	for {
		select {
		case <-end.C:
			return
		case <-s.turns.wanted:
			s.wait()
		}
	}
}

// step applies changes, lets time pass, and returns the observations until the next step.
//
// Each write of an HPA and each restart is applied while all goroutines are blocked, and takes full
// effect before the next change. A reconcile that it causes therefore sees the earlier changes of
// the list, and none of the later ones. New metrics, scales, templates and faults wake no goroutine,
// so there is nothing to wait for after them.
func (s *session) step(q *stepRequest) (answers []apiAnswer, log []entry, err error) {
	s.observed.reset()
	s.answers, s.failed, s.during = nil, nil, q.during
	if s.turns != nil {
		s.turns.stepBegins(q.during)
	} else if len(q.during) > 0 {
		return nil, nil, errors.New("`during` requires `turns`")
	}
	settled := 0
	settle := func() {
		s.wait()
		settled = s.observed.settled(settled)
	}
	for i := range q.apply {
		change := &q.apply[i]
		if answer, ok := s.cluster.write(change); ok {
			s.answers = append(s.answers, answer)
			settle()
		} else if change.restart {
			s.stop()
			settle()
			s.start()
			settle()
		} else if err := s.cluster.apply(change); err != nil {
			return nil, nil, err
		} else if change.podsChange() {
			settle()
		}
	}
	ahead := q.until - s.now()
	if ahead < 0 {
		return nil, nil, fmt.Errorf("it is %v: too late for %v", s.now(), q.until)
	}
	if ahead > 0 {
		s.pass(ahead)
		settle()
	}
	return s.answers, s.observed.entries, s.failed
}

// podsChange reports whether a change must reach the controller's informers.
func (c *change) podsChange() bool {
	if c.inNamespace != nil {
		c = c.inNamespace.change
	}
	return c.setPods != nil || c.deletePods != nil
}

func (s *session) now() time.Duration { return time.Since(s.observed.epoch) }

// close stops the controller, and gives goroutines that wait for a timer the time to end: up to
// Kubernetes 1.33, stopping does not wait for a worker in the middle of a reconcile.
func (s *session) close() {
	s.stop()
	time.Sleep(24 * time.Hour)
	present.Store(nil)
	s.gatesBack()
}
