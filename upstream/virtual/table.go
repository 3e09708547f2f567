package virtual

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// object is a pointer to an API object.
type object interface {
	runtime.Object
	metav1.Object
}

// table stores the objects of one resource like the API server: each write has a new resource
// version and is sent to all watches. Stored objects are never modified, so they are returned
// without copying.
type table[T object] struct {
	mu       sync.Mutex
	version  int64
	objects  map[string]T
	watchers []*watcher
	// How late the watches receive changes, the changes that they have not received yet, in order,
	// and when they will have received all of them.
	lag  time.Duration
	late []lateEvent
	due  time.Time
	// Whether late changes arrive one after another, because the controller reacts to each of them.
	apart bool
}

// lateEvent is a change that the watches receive later.
type lateEvent struct {
	event   watch.Event
	version int64
}

func newTable[T object]() *table[T] {
	return &table[T]{version: 1, objects: map[string]T{}}
}

// key is the namespace and the name of an object.
func key(namespace, name string) string { return namespace + "/" + name }

func (t *table[T]) get(namespace, name string) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.objects[key(namespace, name)]
	return o, ok
}

// put stores an object and replaces an object of the same namespace and name.
func (t *table[T]) put(o T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	o.SetResourceVersion(strconv.FormatInt(t.version, 10))
	kind := watch.Added
	at := key(o.GetNamespace(), o.GetName())
	if _, ok := t.objects[at]; ok {
		kind = watch.Modified
	}
	t.objects[at] = o
	t.tell(watch.Event{Type: kind, Object: o})
}

// delete removes an object. The watchers receive its last state with the version of the deletion.
func (t *table[T]) delete(namespace, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.objects[key(namespace, name)]
	if !ok {
		return false
	}
	t.version++
	delete(t.objects, key(namespace, name))
	last := copyOf(o)
	last.SetResourceVersion(strconv.FormatInt(t.version, 10))
	t.tell(watch.Event{Type: watch.Deleted, Object: last})
	return true
}

// list returns all objects sorted by namespace and name, and the version at which they were read.
func (t *table[T]) list() ([]T, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]T, 0, len(t.objects))
	for _, o := range t.objects {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	return list, strconv.FormatInt(t.version, 10)
}

// watch sends every later write. The cluster does not change between a controller's list and its
// watch, so no earlier version is required.
func (t *table[T]) watch() watch.Interface {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &watcher{events: make(chan watch.Event, 100), done: make(chan struct{})}
	w.listed = t.version
	w.forget = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.watchers = slices.DeleteFunc(t.watchers, func(other *watcher) bool { return other == w })
	}
	t.watchers = append(t.watchers, w)
	return w
}

// setLag sets how late the watches receive later changes: a little more than the lag, so that no
// change arrives exactly when a reconcile is due that began with an earlier change.
func (t *table[T]) setLag(lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lag = lag; lag > 0 {
		t.lag += lateChange
	}
}

// lateChange is the additional delay of each late change.
const lateChange = 2 * time.Nanosecond

// tell sends a change to all watches, now or later, but not before an earlier one.
func (t *table[T]) tell(e watch.Event) {
	now := time.Now()
	earliest := t.due
	if t.apart && len(t.late) > 0 {
		earliest = earliest.Add(time.Nanosecond)
	}
	if t.due = now.Add(t.lag); t.due.Before(earliest) {
		t.due = earliest
	}
	if !t.due.After(now) {
		t.deliver(lateEvent{e, t.version})
		return
	}
	t.late = append(t.late, lateEvent{e, t.version})
	time.AfterFunc(t.due.Sub(now), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		first := t.late[0]
		t.late = t.late[1:]
		t.deliver(first)
	})
}

// deliver sends a change to the watches that began before it.
func (t *table[T]) deliver(late lateEvent) {
	for _, w := range t.watchers {
		if late.version <= w.listed {
			continue
		}
		select {
		case w.events <- late.event:
		case <-w.done:
		}
	}
}

// watcher is one watch of a table.
type watcher struct {
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
	forget func()
	listed int64 // the version of the table when the watch began
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.once.Do(func() {
		close(w.done)
		w.forget()
	})
}
