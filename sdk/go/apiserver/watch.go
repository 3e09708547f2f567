package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// WatchEvent is an event of a watch.
type WatchEvent struct {
	// Watch is the request that began the watch.
	Watch *Request
	// Number is the number of the event after the state at the beginning of the watch, from 1.
	Number int
	// Type is ADDED, MODIFIED or DELETED.
	Type string
	// Name is the name of the object.
	Name string
	// At is the time of the change.
	At time.Time
}

// watcher streams the changes of a selection.
type watcher struct {
	*selection
	request *Request
	table   *table
	delay   func(WatchEvent) time.Duration
	from    int64 // the version of the last change that was sent
	events  int   // how many events there were after the initial state
	next    int64 // the version of the last of them
	due     time.Time
	text    []byte
	err     error
}

// watch streams changes until the request ends. It ignores timeoutSeconds, which clients choose at
// random: a real API server ends a watch after some minutes.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, c *Request) {
	q, err := newSelection(c.Namespace, c.Query)
	if err == nil && c.Name != "" {
		err = unserved("watches of a single path; use a field selector")
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	t := s.tableOf(c.Resource.GroupResource())
	t.watchers = append(t.watchers, wake)
	watcher := &watcher{selection: q, request: c, table: t, delay: s.Delay}
	watcher.begin(t.version)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.watchers = slices.DeleteFunc(t.watchers, func(o chan struct{}) bool { return o == wake })
	}()
	for {
		more := watcher.catchUp()
		s.mu.Unlock()
		if _, err := w.Write(watcher.text); err != nil || !more {
			return
		}
		watcher.text = watcher.text[:0]
		w.(http.Flusher).Flush()
		var due <-chan time.Time
		if held := time.Until(watcher.due); held > 0 {
			due = time.After(held)
		}
		select {
		case <-wake:
		case <-due:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

// begin finds the version to start from, and sends the current state if the client wants it.
func (w *watcher) begin(now int64) {
	w.from, _ = strconv.ParseInt(w.request.Query.Get("resourceVersion"), 10, 64)
	streamed := w.request.Query.Get("sendInitialEvents") == "true"
	if w.from != 0 && !streamed {
		return
	}
	w.from = now
	if w.request.Query.Get("sendInitialEvents") == "false" {
		return
	}
	for _, key := range w.table.keys {
		if o := w.table.objects[key]; w.has(o) {
			w.send("ADDED", o)
		}
	}
	if streamed {
		w.text = fmt.Appendf(w.text, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,`+
			`"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+
			"\n", w.request.Resource.Kind, w.request.Version.String(), w.from)
	}
}

// catchUp appends the changes since the last call. It returns false if the watch must end.
func (w *watcher) catchUp() bool {
	if w.from < w.table.trimmed {
		w.err = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)",
			w.from, w.table.trimmed))
	}
	i, _ := slices.BinarySearchFunc(w.table.changes, w.from+1, func(c change, version int64) int {
		return cmp.Compare(c.version, version)
	})
	for _, c := range w.table.changes[i:] {
		kind := w.kindOf(c)
		if w.err != nil || !w.isDue(c, kind) {
			break
		}
		w.change(c, kind)
		w.from = c.version
	}
	if w.err == nil {
		return true
	}
	w.text = appendError(w.text, w.err)
	return false
}

// kindOf returns the type of the event that a change is for a client that watches a selection, or
// nothing.
func (w *watcher) kindOf(c change) string {
	was, is := w.has(c.before), w.has(c.after)
	switch {
	case is && was:
		return "MODIFIED"
	case is:
		return "ADDED"
	case was:
		return "DELETED"
	}
	return ""
}

// isDue returns false if the event of a change is delivered later.
func (w *watcher) isDue(c change, kind string) bool {
	if w.delay == nil || kind == "" {
		return true
	}
	if c.version != w.next {
		w.next = c.version
		w.events++
		o := c.after
		if o == nil {
			o = c.before
		}
		w.due = c.at.Add(w.delay(WatchEvent{
			Watch: w.request, Number: w.events, Type: kind, Name: o.meta().GetName(), At: c.at,
		}))
	}
	return !time.Now().Before(w.due)
}

// change appends the event of a change.
func (w *watcher) change(c change, kind string) {
	switch {
	case kind == "":
	case kind != "DELETED":
		w.send(kind, c.after)
	case c.gone != nil:
		w.send(kind, c.gone)
	default:
		// The object still exists, but no longer in the selection: its former state, at this version.
		last := c.before.meta().DeepCopy()
		last.SetResourceVersion(versionText(c.version))
		o, err := makeObject(c.before.key, last.Object)
		if err != nil {
			w.err = err
			return
		}
		w.send("DELETED", o)
	}
}

func (w *watcher) send(kind string, o *object) {
	text, err := w.request.show(o)
	if err != nil {
		w.err = err
		return
	}
	w.text = appendEvent(w.text, kind, text)
}

func appendEvent(text []byte, kind string, object []byte) []byte {
	text = fmt.Appendf(text, `{"type":%q,"object":`, kind)
	return append(append(text, object...), "}\n"...)
}

func appendError(text []byte, err error) []byte {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	object, err := json.Marshal(&status)
	if err != nil {
		object = []byte("{}")
	}
	return appendEvent(text, "ERROR", object)
}
