package virtual

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

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
	w.forget = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.watchers = slices.DeleteFunc(t.watchers, func(other *watcher) bool { return other == w })
	}
	t.watchers = append(t.watchers, w)
	return w
}

func (t *table[T]) tell(e watch.Event) {
	for _, w := range t.watchers {
		select {
		case w.events <- e:
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
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.once.Do(func() {
		close(w.done)
		w.forget()
	})
}
