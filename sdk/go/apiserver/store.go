package apiserver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// keptChanges is the number of changes of a resource that a watch may be behind.
const keptChanges = 4096

// table holds the objects of one resource, and its latest changes for watches.
type table struct {
	resource *Resource
	// number distinguishes the UIDs of tables. That of HorizontalPodAutoscalers is 0, as the engine
	// protocol requires.
	number   int
	objects  map[string]*object
	keys     []string // sorted
	created  int      // how many objects
	version  int64    // the resource version of the last change
	changes  []change
	trimmed  int64 // the version of the last change that was forgotten
	watchers []chan struct{}
}

// change is a write of an object. before is nil for a creation, after for a deletion, whose last
// state is gone.
type change struct {
	version             int64
	at                  time.Time
	before, after, gone *object
}

// Change is a change of an object, in the stored version. Before is nil for a new object, After for a
// deleted one. The objects must not be changed.
type Change struct {
	Resource        *Resource
	Namespace, Name string
	Before, After   map[string]any
}

// ref names an object in a server.
type ref struct {
	table *table
	key   string
}

// commit stores an object, or deletes it if content is nil. The lock is held.
func (s *Server) commit(t *table, key string, content map[string]any) (*object, error) {
	before := t.objects[key]
	t.version++
	c := change{version: t.version, before: before}
	shown := content
	if content == nil {
		shown = deepCopy(before.content)
	}
	err := unstructured.SetNestedField(shown, versionText(t.version), "metadata", "resourceVersion")
	if err != nil {
		return nil, err
	}
	o, err := makeObject(key, shown)
	if err != nil {
		return nil, err
	}
	i, _ := slices.BinarySearch(t.keys, key)
	switch {
	case content == nil:
		c.gone = o
		delete(t.objects, key)
		t.keys = slices.Delete(t.keys, i, i+1)
	case before == nil:
		t.created++
		t.keys = slices.Insert(t.keys, i, key)
		fallthrough
	default:
		c.after = o
		t.objects[key] = o
	}
	s.own(ref{t, key}, before, c.after)
	t.record(c)
	s.report(t, o, c)
	return o, nil
}

// report passes a change on to the request that made it, or to the observer of the server.
func (s *Server) report(t *table, o *object, c change) {
	made := Change{Resource: t.resource, Namespace: o.meta().GetNamespace(), Name: o.meta().GetName()}
	if c.before != nil {
		made.Before = c.before.content
	}
	if c.after != nil {
		made.After = c.after.content
	}
	switch {
	case s.current != nil:
		s.current.Changes = append(s.current.Changes, made)
	case s.Changed != nil:
		s.Changed(made)
	}
}

// record keeps a change and wakes the watches.
func (t *table) record(c change) {
	if len(t.changes) >= 2*keptChanges {
		t.trimmed = t.changes[keptChanges-1].version
		t.changes = slices.Delete(t.changes, 0, keptChanges)
	}
	c.at = time.Now()
	t.changes = append(t.changes, c)
	for _, w := range t.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// own updates the index of owners after a change of an object.
func (s *Server) own(r ref, before, after *object) {
	if before != nil {
		for _, owner := range before.meta().GetOwnerReferences() {
			delete(s.dependents[owner.UID], r)
		}
		if after == nil {
			delete(s.byUID, before.meta().GetUID())
		}
	}
	if after == nil {
		return
	}
	s.byUID[after.meta().GetUID()] = r
	for _, owner := range after.meta().GetOwnerReferences() {
		if s.dependents[owner.UID] == nil {
			s.dependents[owner.UID] = map[ref]bool{}
		}
		s.dependents[owner.UID][r] = true
	}
}

// dependentsOf returns the dependents of an object, in a fixed order.
func (s *Server) dependentsOf(owner types.UID) []ref {
	var list []ref
	for r := range s.dependents[owner] {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b ref) int {
		if a.table != b.table {
			return a.table.number - b.table.number
		}
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return list
}

// tableOf returns the table of a resource, or nil. The lock is held.
func (s *Server) tableOf(gr schema.GroupResource) *table { return s.tables[gr] }
