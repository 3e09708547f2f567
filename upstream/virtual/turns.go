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

// turns is the controller's work queue where several reconciles may be due, or under way, at once.
// What its workers do at one instant, upstream leaves to chance: here they take turns, one after
// another, in an order that is one of those that can be. A worker that has taken a key waits until
// it is let go; the others wait meanwhile. The log says whose turn it is.
//
// All that is asked of the queue is asked of upstream's own.
type turns struct {
	rateLimitingQueue
	observed *observed
	// door is held by the worker that waits for a key: so keys are known in the order in which the
	// queue handed them out.
	door   chan struct{}
	wanted chan struct{} // somebody waits to be let go

	mu      sync.Mutex
	ended   bool
	waiting []turn
	active  bool       // somebody has the turn
	resyncs []queueKey // keys that the informer hands over, in no certain order
	// Of the worker whose turn it is: its HPA, and whether its update of the scale met a conflict.
	hpa      string
	conflict bool
}

// turn is a worker that waits to be let go.
type turn struct {
	hpa    string
	goesOn bool // with a reconcile that has waited
	lets   chan struct{}
}

func newTurns(o *observed) *turns {
	return &turns{observed: o, door: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
}

// takeOver puts itself in the place of a controller's queue, and takes chance out of the order in
// which the controller names HPAs with the same pods.
func (t *turns) takeOver(controller any) {
	queue := privateField(controller, "queue")
	t.rateLimitingQueue = queue.Interface().(rateLimitingQueue)
	queue.Set(reflect.ValueOf(t))
	sortSelectors(controller)
}

// hpaOf is the name of the HPA of a key. There is but one namespace.
func hpaOf(key queueKey) string {
	_, hpa, _ := strings.Cut(any(key).(string), "/")
	return hpa
}

// privateField is a field of a struct, to be read and set.
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
	hpa := hpaOf(key)
	mine := t.ask(hpa, false)
	<-t.door
	<-mine
	t.begin(hpa, false)
	return key, false
}

// AddRateLimited queues a key one sync period later. What comes from the informer, as its resync
// does, is queued in the order of the keys.
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

// queueResyncs queues what the informer has handed over. It is called when nothing moves any more.
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

// wake has the session look who waits.
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

// sleep lets time pass in the middle of a reconcile, and others have their turns meanwhile.
func (t *turns) sleep(span time.Duration) {
	hpa, conflict := t.hpa, t.conflict
	t.setActive(false)
	time.Sleep(span)
	<-t.ask(hpa, true)
	t.begin(hpa, conflict)
}

// awaitRetry waits before another attempt to update the scale, if this is one.
func (t *turns) awaitRetry() {
	if t != nil && t.conflict {
		t.conflict = false
		t.sleep(retryDuration)
	}
}

// updated hears of what came of an update of the scale.
func (t *turns) updated(err error) {
	if t != nil {
		t.conflict = apierrors.IsConflict(err)
	}
}

// awaitMetrics is how long a query of a metrics API takes.
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
	t.setActive(false)
	t.observed.record(entry{kind: reconciled, name: hpaOf(key)})
	t.rateLimitingQueue.Done(key)
}

// ask waits in the line. When the controller is stopped, nobody is held up any more.
func (t *turns) ask(hpa string, goesOn bool) (lets chan struct{}) {
	lets = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		close(lets)
		return lets
	}
	t.waiting = append(t.waiting, turn{hpa, goesOn, lets})
	t.wake()
	return lets
}

// next lets the first one go, if somebody waits. It is called when nothing moves any more. Those
// that go on with a reconcile are before those that begin one; they wake in no certain order, and
// are sorted by name.
func (t *turns) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	first := 0
	for i, turn := range t.waiting {
		before := t.waiting[first]
		if turn.goesOn && (!before.goesOn || turn.hpa < before.hpa) {
			first = i
		}
	}
	close(t.waiting[first].lets)
	t.waiting = slices.Delete(t.waiting, first, first+1)
	return true
}

// end lets everybody go.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, turn := range t.waiting {
		close(turn.lets)
	}
	t.waiting = nil
}
