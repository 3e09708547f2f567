package lockstep

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/apiserver"
)

// turns says which reconcile a request belongs to, in scenarios in which several reconciles may be
// due or in progress at once, and makes reconciles proceed one after another.
//
// A reconcile is what a goroutine does between the calls that take a key from a work queue of
// client-go and mark it as done. The queue reports both to its metrics, on this goroutine, but not
// the key: the HPA is the one that the reconcile reads or writes, the only one with its target, or
// that of its events.
type turns struct {
	world  *world
	finish func(*turn)
	// wanted wakes the session: a worker waits.
	wanted chan struct{}

	mu      sync.Mutex
	ended   bool
	count   int
	taken   map[string]*turn // by the goroutine of the worker
	waiting []*turn
	failure error

	// The changes in the middle of the reconciles of this step, and the number of its requests.
	during   []during
	requests map[string]int
	pause    *pause
}

// turn is a reconcile.
type turn struct {
	number int
	hpa    string
	last   time.Time // of its last request; zero before its first one
	acted  bool      // something is recorded of it
	id     string    // of a reconcile of controller-runtime
	busy   bool      // such a reconcile is in a request
	resume chan struct{}
}

// pause is a worker that waits in the middle of a reconcile until changes are applied.
type pause struct {
	apply  []change
	resume chan struct{}
}

// presentTurns are those of the scenario that is open, if it has turns: metrics of queues are
// global.
var presentTurns atomic.Pointer[turns]

func newTurns(w *world, finish func(*turn)) *turns {
	return &turns{
		world: w, finish: finish, wanted: make(chan struct{}, 1), taken: map[string]*turn{},
		requests: map[string]int{},
	}
}

// goroutineID identifies the calling goroutine.
func goroutineID() string {
	var text [64]byte
	rest := bytes.TrimPrefix(text[:runtime.Stack(text[:], false)], []byte("goroutine "))
	id, _, _ := bytes.Cut(rest, []byte(" "))
	return string(id)
}

// took is called when the calling goroutine has taken a key.
func (t *turns) took() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	one := &turn{number: t.count}
	if len(t.world.hpas) == 1 {
		one.hpa = t.world.hpas[0]
	}
	t.taken[goroutineID()] = one
}

// done is called when the calling goroutine is about to mark its key as done.
func (t *turns) done() {
	t.mu.Lock()
	id := goroutineID()
	one := t.taken[id]
	t.mu.Unlock()
	if one == nil {
		return
	}
	if one.acted {
		t.finish(one)
	}
	t.mu.Lock()
	delete(t.taken, id)
	t.mu.Unlock()
}

// present is the reconcile of the calling goroutine, or nil.
func (t *turns) present() *turn {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken[goroutineID()]
}

// gate makes a request wait for its turn: the first one of a reconcile, and the first one after
// time has passed in it.
func (t *turns) gate(c *apiserver.Request) {
	one := t.enter(c.Context)
	if one == nil {
		return
	}
	if hpa := t.hpaOf(c); hpa != "" {
		one.hpa = hpa
	}
	if !one.last.Equal(time.Now()) {
		t.await(one)
	}
}

// await waits until a reconcile is resumed.
func (t *turns) await(one *turn) {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return
	}
	one.resume = make(chan struct{})
	t.waiting = append(t.waiting, one)
	t.mu.Unlock()
	t.wake()
	<-one.resume
	one.last = time.Now()
}

// signal is a channel that receives when a worker waits.
func (t *turns) signal() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.wanted
}

func (t *turns) wake() {
	select {
	case t.wanted <- struct{}{}:
	default:
	}
}

// sleep lets time pass in the middle of a request.
func (t *turns) sleep(span time.Duration) {
	time.Sleep(span)
	if t == nil {
		return
	}
	if one := t.present(); one != nil {
		t.await(one)
	}
}

// next resumes the first waiting reconcile: those in progress in the order of the names of their
// HPAs, then the others in the order of the queue. It is called when all goroutines are blocked.
func (t *turns) next() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	first := slices.MinFunc(t.waiting, func(a, b *turn) int {
		switch begunA, begunB := !a.last.IsZero(), !b.last.IsZero(); {
		case begunA && begunB && a.hpa != b.hpa:
			return bytes.Compare([]byte(a.hpa), []byte(b.hpa))
		case begunA != begunB && begunA:
			return -1
		case begunA != begunB:
			return 1
		}
		return a.number - b.number
	})
	t.waiting = slices.DeleteFunc(t.waiting, func(o *turn) bool { return o == first })
	close(first.resume)
	return true
}

// end resumes all reconciles.
func (t *turns) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, one := range t.waiting {
		close(one.resume)
	}
	t.waiting = nil
	if t.pause != nil {
		close(t.pause.resume)
		t.pause = nil
	}
}

// hpaOf returns the HPA that a request identifies, or "".
func (t *turns) hpaOf(c *apiserver.Request) string {
	if requestOf(c) == hpaResource {
		return c.Name
	}
	if c.Resource == nil || c.Subresource != "scale" {
		return ""
	}
	only := ""
	for _, name := range t.world.hpas {
		hpa := t.world.server.Get(hpaResource, t.world.namespace, name)
		if hpa == nil || !targets(hpa, c) {
			continue
		}
		if only != "" {
			return ""
		}
		only = name
	}
	return only
}

// targets reports whether an HPA targets the object of a request.
func targets(hpa map[string]any, c *apiserver.Request) bool {
	field := func(name string) string {
		s, _, _ := unstructured.NestedString(hpa, "spec", "scaleTargetRef", name)
		return s
	}
	gv, err := schema.ParseGroupVersion(field("apiVersion"))
	return err == nil && gv.Group == c.Resource.GroupResource().Group &&
		field("kind") == c.Resource.Kind && field("name") == c.Name
}

// begin sets the changes in the middle of the reconciles of a step.
func (t *turns) begin(changes []during) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.during = changes
	clear(t.requests)
}

// recorded is called after a request of a kind has been answered, as the log names it. It waits
// while the changes after this request are made.
func (t *turns) recorded(kind string) {
	t.mu.Lock()
	t.requests[kind]++
	var apply []change
	for _, d := range t.during {
		if d.After == kind && d.Number == t.requests[kind] {
			apply = append(apply, d.Apply...)
		}
	}
	if len(apply) == 0 || t.ended {
		t.mu.Unlock()
		return
	}
	p := &pause{apply, make(chan struct{})}
	t.pause = p
	t.mu.Unlock()
	t.wake()
	<-p.resume
}

// paused returns the worker that waits for changes, if there is one. It is called when all
// goroutines are blocked.
func (t *turns) paused() *pause {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pause
	t.pause = nil
	return p
}

// failed is the first error.
func (t *turns) failed() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// identify sets the HPA of a reconcile that is not known from its requests. All entries since the
// last time when all goroutines were blocked belong to one reconcile, and so do the events among
// them, which another goroutine has sent.
func identify(log []entry) {
	var unknown *turn
	hpa := ""
	for _, e := range log {
		if e.turn != nil && e.turn.hpa == "" {
			unknown = e.turn
		}
		if sent, ok := e.body.(event); ok {
			if hpa != "" && hpa != sent.HPA {
				return
			}
			hpa = sent.HPA
		}
	}
	if unknown != nil {
		unknown.hpa = hpa
	}
}

// marked adds the entries that say which HPA the entries of a log belong to.
func (t *turns) marked(log []entry) (marked []entry) {
	identify(log)
	var inside *turn
	for _, e := range log {
		switch {
		case e.turn == nil:
			if e.namespace != nil && e.kind != "sendEvent" {
				t.fail(unsupported("several HPAs or slow metrics require a controller whose work queue " +
					"reports its metrics with client-go"))
			}
			marked = append(marked, e)
			continue
		case e.turn.hpa == "":
			t.unknown(e.at)
			continue
		case e.turn != inside:
			inside = e.turn
			marked = append(marked, entry{at: e.at, kind: "reconcile", body: reconcileOf{inside.hpa}})
		}
		if e.kind == "reconciled" {
			e.body, inside = reconcileOf{e.turn.hpa}, nil
		}
		marked = append(marked, e)
	}
	return marked
}

// reconcileOf is the body of the entries reconcile and reconciled.
type reconcileOf struct {
	HPA string `json:"hpa"`
}

// unknown is the error for a reconcile whose HPA is not known.
func (t *turns) unknown(at time.Duration) {
	t.fail(fmt.Errorf("a reconcile at t=%s neither reads nor writes an HPA, nor the scale of a target "+
		"that only one HPA has, nor sends an event: the SDK does not know which HPA it is of", at))
}

func (t *turns) fail(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = cmp.Or(t.failure, why)
}
