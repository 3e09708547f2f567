package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Server is the API server. Its fields must be set before the first request.
type Server struct {
	// Before, if set, is called before each request, except discovery. It may wait, or return the error
	// with which the request is answered.
	Before func(*Request) error
	// After, if set, is called after each request, except discovery and watches, in the order of the
	// answers. If it sets Request.Err, the request is answered with that error.
	After func(*Request)
	// Delay, if set, is called for each event of a watch, except those of the state at its beginning.
	// The event is delivered that long after its change, and later events of the watch wait for it.
	// Delay must not call the server.
	Delay func(WatchEvent) time.Duration
	// Changed, if set, is called after each change of an object that no request of a client made: by
	// [Server.Create] and the like. Those that requests made are in Request.Changes. The server is
	// locked.
	Changed func(Change)

	mu      sync.Mutex
	tables  map[schema.GroupResource]*table
	current *Request // the request of a client that is being answered
	order   []*table // for the discovery
	apis    map[schema.GroupVersion]*api
	// dependents of an owner, and all objects, by UID.
	dependents map[types.UID]map[ref]bool
	byUID      map[types.UID]ref
}

// New returns a server of the [Builtin] kinds.
func New() *Server {
	s := &Server{
		tables: map[schema.GroupResource]*table{}, apis: map[schema.GroupVersion]*api{},
		dependents: map[types.UID]map[ref]bool{}, byUID: map[types.UID]ref{},
	}
	for _, r := range Builtin() {
		s.Serve(r)
	}
	return s
}

// Serve serves a resource. A resource with the same name and group is replaced with its objects.
func (s *Server) Serve(r *Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(r)
}

func (s *Server) serve(r *Resource) {
	t := &table{resource: r, number: len(s.order), objects: map[string]*object{}, version: 1}
	if old := s.tables[r.GroupResource()]; old != nil {
		t.number, t.version = old.number, old.version
		s.order[t.number] = t
	} else {
		s.order = append(s.order, t)
	}
	for _, group := range r.groups() {
		s.tables[schema.GroupResource{Group: group, Resource: r.Plural}] = t
	}
}

// Resource returns a resource, or nil.
func (s *Server) Resource(gr schema.GroupResource) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tableOf(gr); t != nil {
		return t.resource
	}
	return nil
}

// ResourceOf returns the resource that serves a kind in a version, or nil.
func (s *Server) ResourceOf(gvk schema.GroupVersionKind) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.order {
		v := t.resource.version(gvk.GroupVersion())
		if t.resource.Kind == gvk.Kind && v != nil {
			return t.resource
		}
	}
	return nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.discover(w, r) {
		return
	}
	c, err := s.parse(r)
	if c.Err = err; err == nil && s.Before != nil {
		c.Err = s.Before(c)
	}
	if c.Err == nil && c.Verb == "watch" {
		s.watch(w, r, c)
		return
	}
	var answer any
	if c.Err == nil {
		answer, c.Err = s.answer(c)
	}
	if s.After != nil {
		s.After(c)
	}
	switch {
	case c.Err != nil:
		fail(w, c.Err)
	case c.Verb == "create" && c.Subresource == "":
		respond(w, http.StatusCreated, answer)
	default:
		respond(w, http.StatusOK, answer)
	}
}

func (s *Server) answer(c *Request) (any, error) {
	if c.api != nil {
		return c.api.answer(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = c
	defer func() { s.current = nil }()
	t := s.tableOf(c.Resource.GroupResource())
	if o := t.objects[keyOf(c.Namespace, c.Name)]; o != nil {
		c.Before = o.content
	}
	switch c.Verb {
	case "list":
		return s.list(t, c)
	case "deletecollection":
		return s.removeAll(t, c)
	}
	o, err := s.do(t, c)
	if err != nil {
		return nil, err
	}
	c.Object = o.content
	if c.Subresource == "scale" {
		return c.scale(o.content), nil
	}
	return c.show(o)
}

func (s *Server) do(t *table, c *Request) (*object, error) {
	switch c.Verb {
	case "get":
		if o := t.objects[keyOf(c.Namespace, c.Name)]; o != nil {
			return o, nil
		}
		return nil, notFound(c.Resource, keyOf(c.Namespace, c.Name))
	case "delete":
		options, err := c.deleteOptions()
		if err != nil {
			return nil, err
		}
		return s.remove(t, keyOf(c.Namespace, c.Name), options)
	case "create":
		return s.create(t, c)
	case "update":
		return s.update(t, c)
	}
	return s.patch(t, c)
}

func (s *Server) removeAll(t *table, c *Request) (any, error) {
	q, err := newSelection(c.Namespace, c.Query)
	if err != nil {
		return nil, err
	}
	options, err := c.deleteOptions()
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Clone(t.keys) {
		if o := t.objects[key]; q.has(o) {
			if _, err := s.remove(t, key, options); err != nil {
				return nil, err
			}
		}
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
	}, nil
}

// show returns an object in the version of a request.
func (c *Request) show(o *object) (json.RawMessage, error) {
	return c.Resource.textIn(c.Version, o)
}

func (r *Resource) textIn(v *Version, o *object) (json.RawMessage, error) {
	if v == r.stored() {
		return o.json, nil
	}
	content, err := r.convert(o.content, v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

func respond(w http.ResponseWriter, code int, answer any) {
	respondAs(w, code, "application/json", answer)
}

func respondAs(w http.ResponseWriter, code int, contentType string, answer any) {
	text, ok := answer.(json.RawMessage)
	if !ok {
		var err error
		if text, err = json.Marshal(answer); err != nil {
			fail(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func fail(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answer := status.Status()
	answer.Kind, answer.APIVersion = "Status", "v1"
	respond(w, int(answer.Code), &answer)
}
