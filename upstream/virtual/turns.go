package virtual

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// turns is the controller's work queue for scenarios in which several reconciles may be due, or in
// progress, at the same time. In upstream, the order of workers at one time is random. Here the
// workers proceed one after another, in an order that is possible upstream. A worker that has taken
// a key waits until it is resumed, and the other workers wait meanwhile. The log names the HPA of
// each reconcile.
//
// All calls are forwarded to upstream's queue.
type turns struct {
	rateLimitingQueue
	observed *observed
	// A worker holds door while it waits for a key, so that keys are known in queue order.
	door   chan struct{}
	wanted chan struct{} // a worker waits to be resumed

	mu      sync.Mutex
	ended   bool
	waiting []turn
	active  bool       // a reconcile is running
	resyncs []queueKey // keys from the informer, in random order
	// What happens in the middle of reconciles in this step, the number of its requests of each
	// kind, and the worker that waits until it has happened.
	during   []duringRequest
	requests [updateStatus + 1]int
	pause    *pause
	// The running reconcile: its HPA, and whether its update of the scale met a conflict.
	hpa      string
	conflict bool
	// By the HPA of a reconcile in progress.
	progress map[string]progress
}

// progress is what a reconcile has done so far.
type progress struct {
	queue queueCounts // what has changed in the queue before it
	acted bool        // it has sent a request, or reported an error
}

// turn is a worker that waits to be resumed.
type turn struct {
	hpa     string
	resumes bool // in the middle of a reconcile
	resume  chan struct{}
}

// pause is a worker that waits in the middle of a reconcile until changes are applied.
type pause struct {
	apply  []change
	resume chan struct{}
}

func newTurns(o *observed) *turns {
	return &turns{
		observed: o,
		door:     make(chan struct{}, 1),
		wanted:   make(chan struct{}, 1),
		progress: map[string]progress{},
	}
}

// takeOver replaces the queue of a controller, and removes the randomness from the order in which
// the controller names HPAs with the same pods.
func (t *turns) takeOver(controller any) {
	queue := privateField(controller, "queue")
	t.rateLimitingQueue = queue.Interface().(rateLimitingQueue)
	queue.Set(reflect.ValueOf(t))
	sortSelectors(controller)
}

// hpaOf returns the name of the HPA of a key. There is only one namespace.
func hpaOf(key queueKey) string {
	_, hpa, _ := strings.Cut(any(key).(string), "/")
	return hpa
}

// privateField gives access to an unexported field of a struct.
func privateField(of any, name string) reflect.Value {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

func (t *turns) Get() (key queueKey, shutdown bool) {
	t.door <- struct{}{}
	key, shutdown = t.rateLimitingQueue.Get()
	if shutdown {
		<-t.door
		return key, shutdown
	}
	hpa, latency := hpaOf(key), queueSeries.latencyOfLast()
	mine := t.ask(hpa, false)
	<-t.door
	<-mine
	t.begin(hpa, false)
	t.mu.Lock()
	t.progress[hpa] = progress{queue: queueSeries.beginTurn(latency)}
	t.mu.Unlock()
	return key, false
}

// AddRateLimited queues a key one sync period later. Keys from the informer, for instance of a
// resync, are queued in order.
func (t *turns) AddRateLimited(key queueKey) {
	t.mu.Lock()
	if t.active || t.ended {
		t.mu.Unlock()
		t.rateLimitingQueue.AddRateLimited(key)
		return
	}
	t.resyncs = append(t.resyncs, key)
	t.wake()
	t.mu.Unlock()
}

// queueResyncs queues the keys from the informer. It is called when all goroutines are blocked.
func (t *turns) queueResyncs() bool {
	t.mu.Lock()
	keys := t.resyncs
	t.resyncs = nil
	t.mu.Unlock()
	slices.SortFunc(keys, func(a, b queueKey) int { return cmp.Compare(hpaOf(a), hpaOf(b)) })
	for _, key := range keys {
		t.rateLimitingQueue.AddRateLimited(key)
	}
	return len(keys) > 0
}

func (t *turns) setActive(active bool) {
	t.mu.Lock()
	t.active = active
	t.mu.Unlock()
}

// wake makes the session check for waiting workers.
func (t *turns) wake() {
	select {
	case t.wanted <- struct{}{}:
	default:
	}
}

func (t *turns) begin(hpa string, conflict bool) {
	t.setActive(true)
	t.hpa, t.conflict = hpa, conflict
	t.observed.record(entry{kind: reconcile, name: hpa})
}

// sleep lets time pass in the middle of a reconcile. Other reconciles proceed meanwhile.
func (t *turns) sleep(span time.Duration) {
	hpa, conflict := t.hpa, t.conflict
	t.observed.pauseSeries(hpa)
	t.setActive(false)
	time.Sleep(span)
	<-t.ask(hpa, true)
	t.begin(hpa, conflict)
}

// stepBegins sets what happens in the middle of the reconciles of a step.
func (t *turns) stepBegins(during []duringRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.during = during
	clear(t.requests[:])
}

// requested is called by a worker after each request and each error. After a request, it waits
// while something else happens.
func (t *turns) requested(kind entryKind) {
	t.mu.Lock()
	t.progress[t.hpa] = progress{queue: t.progress[t.hpa].queue, acted: true}
	if kind == reconcileError {
		t.mu.Unlock()
		return
	}
	t.requests[kind]++
	var apply []change
	for i := range t.during {
		if d := &t.during[i]; d.after == kind && d.number == t.requests[kind] {
			apply = append(apply, d.apply...)
		}
	}
	if len(apply) == 0 || t.ended {
		t.mu.Unlock()
		return
	}
	p := &pause{apply: apply, resume: make(chan struct{})}
	t.pause = p
	t.wake()
	t.mu.Unlock()
	<-p.resume
}

// paused returns the worker that waits for changes, if there is one. It is called when all
// goroutines are blocked.
func (t *turns) paused() *pause {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pause
	t.pause = nil
	return p
}

// awaitRetry waits if the previous attempt to update the scale met a conflict.
func (t *turns) awaitRetry() {
	if t != nil && t.conflict {
		t.conflict = false
		t.sleep(retryDuration)
	}
}

// updated records the result of an update of the scale.
func (t *turns) updated(err error) {
	if t != nil {
		t.conflict = apierrors.IsConflict(err)
	}
}

// awaitMetrics waits for as long as a query of a metrics API takes.
func (c *cluster) awaitMetrics() {
	switch span := c.faults.slowMetrics; {
	case span <= 0:
	case c.turns == nil:
		time.Sleep(span)
	default:
		c.turns.sleep(span)
	}
}

func (t *turns) Done(key queueKey) {
	hpa := hpaOf(key)
	t.mu.Lock()
	t.active = false
	done := t.progress[hpa]
	delete(t.progress, hpa)
	t.mu.Unlock()
	// The key of a deleted HPA has no reconcile.
	if done.acted {
		t.observed.recordSeriesOf(hpa, done.queue)
	}
	t.observed.record(entry{kind: reconciled, name: hpa})
	t.rateLimitingQueue.Done(key)
}

// ask adds a waiting worker. It returns the channel that resumes the worker, which is already closed
// if the controller is stopped.
func (t *turns) ask(hpa string, resumes bool) (resume chan struct{}) {
	resume = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		close(resume)
		return resume
	}
	t.waiting = append(t.waiting, turn{hpa, resumes, resume})
	t.wake()
	return resume
}

// next resumes the first waiting worker. It is called when all goroutines are blocked. Reconciles
// in progress precede new ones; they wake in random order, and are sorted by name.
func (t *turns) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	first := 0
	for i, turn := range t.waiting {
		before := t.waiting[first]
		if turn.resumes && (!before.resumes || turn.hpa < before.hpa) {
			first = i
		}
	}
	close(t.waiting[first].resume)
	t.waiting = slices.Delete(t.waiting, first, first+1)
	return true
}

// end resumes all workers.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, turn := range t.waiting {
		close(turn.resume)
	}
	t.waiting = nil
	if t.pause != nil {
		close(t.pause.resume)
		t.pause = nil
	}
}
