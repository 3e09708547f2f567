package virtual

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
)

// turns is the controller's work queue where there are several HPAs. What its workers do at one
// instant, upstream leaves to chance: here they take turns, one after another, in an order that is
// one of those that can be. A worker that has taken a key waits until it is let go; the others wait
// meanwhile. The log says whose turn it is.
//
// All that is asked of the queue is asked of upstream's own.
type turns struct {
	workqueue.TypedRateLimitingInterface[string]
	observed *observed
	// door is held by the worker that waits for a key: so keys are known in the order in which the
	// queue handed them out.
	door   chan struct{}
	wanted chan struct{} // somebody waits to be let go

	mu      sync.Mutex
	ended   bool
	waiting []turn
}

// turn is a worker that waits to be let go.
type turn struct {
	hpa  string
	lets chan struct{}
}

func newTurns(o *observed) *turns {
	return &turns{observed: o, door: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
}

// takeOver puts itself in the place of a controller's queue, and takes chance out of the order in
// which the controller names HPAs with the same pods.
func (t *turns) takeOver(controller any) {
	queue := privateField(controller, "queue")
	t.TypedRateLimitingInterface =
		queue.Interface().(workqueue.TypedRateLimitingInterface[string])
	queue.Set(reflect.ValueOf(t))
	tracker := privateField(controller, "selectorTracker")
	tracker.Set(reflect.ValueOf(sortedTracker{tracker.Interface().(selectorTracker)}))
}

// privateField is a field of a struct, to be read and set.
func privateField(of any, name string) reflect.Value {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

func (t *turns) Get() (key string, shutdown bool) {
	t.door <- struct{}{}
	key, shutdown = t.TypedRateLimitingInterface.Get()
	if shutdown {
		<-t.door
		return key, shutdown
	}
	_, hpa, _ := strings.Cut(key, "/")
	mine := t.ask(hpa)
	<-t.door
	<-mine
	t.observed.record(entry{kind: reconcile, name: hpa})
	return key, false
}

func (t *turns) Done(key string) {
	_, hpa, _ := strings.Cut(key, "/")
	t.observed.record(entry{kind: reconciled, name: hpa})
	t.TypedRateLimitingInterface.Done(key)
}

// ask waits in the line. When the controller is stopped, nobody is held up any more.
func (t *turns) ask(hpa string) (lets chan struct{}) {
	lets = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		close(lets)
		return lets
	}
	t.waiting = append(t.waiting, turn{hpa, lets})
	select {
	case t.wanted <- struct{}{}:
	default:
	}
	return lets
}

// next lets the first one go, if somebody waits. It is called when nothing moves any more.
func (t *turns) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	close(t.waiting[0].lets)
	t.waiting = slices.Delete(t.waiting, 0, 1)
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

// selectorTracker is upstream's hpaSelectorTracker.
type selectorTracker interface {
	PutIfAbsent(namespace string, key selectors.Key, selector labels.Selector) bool
	PutIfPresent(namespace string, key selectors.Key, selector labels.Selector) bool
	Delete(namespace string, key selectors.Key)
	HPAsMatchingPods(namespace string, pods []*v1.Pod, limit int) []selectors.Key
}

// sortedTracker names HPAs in order. Upstream's trackers name them in the random order of a map,
// and of more than it was asked for, any: the first ones by name are one of the answers that can be.
type sortedTracker struct{ selectorTracker }

func (s sortedTracker) HPAsMatchingPods(
	namespace string, pods []*v1.Pod, limit int,
) []selectors.Key {
	asked := s.selectorTracker.HPAsMatchingPods(namespace, pods, limit)
	all := s.selectorTracker.HPAsMatchingPods(namespace, pods, 0)
	slices.SortFunc(all, func(a, b selectors.Key) int { return cmp.Compare(a.Name, b.Name) })
	// Not every tracker minds the limit: as many as upstream's own answer has.
	return all[:len(asked)]
}
