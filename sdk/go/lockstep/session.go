package lockstep

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"kube-lockstep.dev/sdk/apiserver"
)

// session is one scenario: a cluster with a running controller, in its own bubble.
type session struct {
	engine   Engine
	run      *Run
	observed *observed
	world    *world
	traffic  *traffic
	cancel   context.CancelFunc
	ended    chan error
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
	if q.Turns {
		return nil, errors.New(
			"several HPAs, slow metrics, or changes during a reconcile: the SDK does " +
				"not report yet which HPA a request belongs to",
		)
	}
	run := &Run{
		Server: apiserver.New(), Namespace: q.Namespace, FeatureGates: q.FeatureGates, flags: q.Flags,
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
	s.traffic = newTraffic(e, s.world, o)
	run.Server.Before, run.Server.After = s.traffic.before, s.traffic.after
	present.Store(o)
	if err := s.world.create(q.Objects); err != nil {
		return nil, err
	}
	time.Sleep(time.Until(epoch) - lead)
	s.start()
	time.Sleep(lead)
	synctest.Wait()
	if err := s.failure(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s.cancel, s.ended = cancel, ended
	s.run.Metrics = nil
	go func() { ended <- s.engine.Start(ctx, s.run) }()
}

// stop ends the controller, and waits up to an hour for it.
func (s *session) stop() error {
	s.cancel()
	select {
	case <-s.ended:
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
	answers := []any{}
	for i := range q.Apply {
		c := &q.Apply[i]
		if c.restart {
			if err := s.stop(); err != nil {
				return nil, err
			}
			s.settle()
			s.start()
			s.settle()
			continue
		}
		answer, err := s.world.apply(c)
		if err != nil {
			return nil, err
		}
		if answer != nil {
			answers = append(answers, answer)
		}
		s.settle()
	}
	ahead := q.Until - s.now()
	if ahead < 0 {
		return nil, fmt.Errorf("it is %v: too late for %v", s.now(), q.Until)
	}
	if ahead > 0 {
		time.Sleep(ahead)
		s.settle()
	}
	if err := s.failure(); err != nil {
		return nil, err
	}
	return &stepped{Now: int64(s.now()), API: answers, Log: s.observed.log()}, nil
}

// settle waits until all goroutines are blocked at the current time.
func (s *session) settle() {
	synctest.Wait()
	s.observed.settle()
}

func (s *session) now() time.Duration { return time.Since(s.observed.epoch) }

// close ends the controller. Requests after it fail.
func (s *session) close() {
	s.traffic.close()
	if err := s.stop(); err != nil {
		recordError(err.Error())
	}
	present.Store(nil)
}
