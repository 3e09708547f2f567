package lockstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"kube-lockstep.dev/sdk/apiserver"
)

// session is one scenario: a cluster with a running controller, in its own bubble.
type session struct {
	engine    Engine
	run       *Run
	observed  *observed
	world     *world
	turns     *turns // or nil
	traffic   *traffic
	disturber *disturber // or nil
	answers   []any      // to the changes of the step
	cancel    context.CancelFunc
	ended     chan error
}

// stepped is the answer to a step.
type stepped struct {
	Now int64   `json:"now"`
	API []any   `json:"api"`
	Log []entry `json:"log"`
}

// openSession starts the controller half a sync period before t=0, a whole minute, so that its
// resyncs do not coincide with the changes of the scenario.
func openSession(e Engine, q *openRequest) (*session, error) {
	run := &Run{
		Server: apiserver.New(), Namespace: q.Namespace,
		FeatureGates: q.FeatureGates, flags: q.Flags, life: &life{},
	}
	run.Config = run.ConfigFor(e.Name)
	period := run.Duration("sync-period")
	if period <= 0 {
		return nil, errors.New("sync-period must be positive")
	}
	if e.Prepare != nil {
		if err := e.Prepare(run); err != nil {
			return nil, fmt.Errorf("Engine.Prepare: %w", err)
		}
	}
	lead := period / 2
	for lead < time.Second {
		lead += period
	}
	epoch := time.Now().Add(lead).Truncate(time.Minute).Add(time.Minute)
	o := &observed{epoch: epoch, run: run, sentEvents: q.SentEvents, objects: q.Objects != nil}
	s := &session{engine: e, run: run, observed: o, world: newWorld(run.Server, q, o)}
	if q.Turns {
		s.takeTurns()
	}
	s.traffic = newTraffic(e, s.world, o)
	s.disturber = newDisturber(q.Disturbances, e.Name, o)
	s.traffic.disturber = s.disturber
	run.Server.Before, run.Server.After = s.traffic.before, s.traffic.after
	run.Server.Delay = func(e apiserver.WatchEvent) time.Duration {
		return s.world.delay(e) + s.disturber.delay(e)
	}
	present.Store(o)
	if err := s.world.create(q.Objects); err != nil {
		return nil, err
	}
	time.Sleep(time.Until(epoch) - lead)
	s.start()
	err := s.pass(0)
	if err = cmp.Or(err, s.failure()); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// takeTurns makes the reconciles of the next controller proceed one after another.
func (s *session) takeTurns() {
	watchQueues()
	s.turns = newTurns(s.world, s.observed.finish)
	s.observed.turns, s.world.turns = s.turns, s.turns
	presentTurns.Store(s.turns)
}

func (s *session) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s.cancel, s.ended = cancel, ended
	s.run.Metrics = nil
	s.begin()
	go func() {
		var err error
		defer func() { ended <- err }() // also if the goroutine ends because of a crash
		err = s.engine.Start(ctx, s.run)
	}()
}

// stop ends the controller, and waits up to an hour for it.
func (s *session) stop() error {
	s.turns.end()
	s.cancel()
	select {
	case <-s.ended:
		s.disturber.hasCrashed() // which does not matter any more
		return nil
	case <-time.After(time.Hour):
		return errors.New("the controller did not end within an hour after its context; " +
			"Engine.Start must return when the context ends")
	}
}

// failure is an error if the controller has returned, or never rests.
func (s *session) failure() error {
	if err := s.traffic.failure(); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		s.ended <- err
		return fmt.Errorf("Engine.Start returned, although its context has not ended: %w", orNil(err))
	default:
		return nil
	}
}

func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// step applies changes, lets time pass, and returns what the controller did. What writes an HPA,
// restarts the controller or reaches its caches takes full effect before the next change.
func (s *session) step(q *stepRequest) (*stepped, error) {
	s.observed.begin()
	s.turns.begin(q.During)
	s.answers = []any{}
	for i := range q.Apply {
		c := &q.Apply[i]
		if c.restart {
			if err := s.restart(); err != nil {
				return nil, err
			}
			continue
		}
		if err := s.apply(c); err != nil {
			return nil, err
		}
		if err := s.settle(); err != nil {
			return nil, err
		}
	}
	if q.Until < s.now() {
		return nil, fmt.Errorf("it is %v: too late for %v", s.now(), q.Until)
	}
	if err := s.pass(q.Until); err != nil {
		return nil, err
	}
	if err := s.failure(); err != nil {
		return nil, err
	}
	return &stepped{Now: int64(s.now()), API: s.answers, Log: s.observed.log()}, nil
}

func (s *session) restart() error {
	if err := s.stop(); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.turns != nil {
		s.takeTurns()
	}
	s.start()
	return s.settle()
}

// apply makes a change.
func (s *session) apply(c *change) error {
	answer, err := s.world.apply(c)
	if answer != nil {
		s.answers = append(s.answers, answer)
	}
	return err
}

// pass lets time pass. Reconciles that begin meanwhile take turns, and a controller that crashes
// starts again.
func (s *session) pass(until time.Duration) error {
	arrived := time.NewTimer(until - s.now())
	defer arrived.Stop()
	for {
		select {
		case <-s.disturber.signal():
			s.crash()
		case <-s.turns.signal():
			if err := s.settle(); err != nil {
				return err
			}
		case <-arrived.C:
			return s.settle()
		}
	}
}

// settle waits until all goroutines are blocked at the current time, and all reconciles have had
// their turns.
func (s *session) settle() error {
	for {
		s.wait()
		s.turns.endIdle()
		s.observed.settle()
		if p := s.turns.paused(); p != nil {
			for i := range p.apply {
				if err := s.apply(&p.apply[i]); err != nil {
					return err
				}
			}
			// The informers receive the changes first.
			synctest.Wait()
			close(p.resume)
			continue
		}
		if !s.turns.next() {
			return s.turns.failed()
		}
	}
}

func (s *session) now() time.Duration { return time.Since(s.observed.epoch) }

// close ends the controller. Requests after it fail.
func (s *session) close() {
	s.traffic.close()
	if err := s.stop(); err != nil {
		recordError(err.Error())
	}
	present.Store(nil)
	presentTurns.Store(nil)
}
