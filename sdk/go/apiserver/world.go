package apiserver

import (
	"encoding/json"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Create creates an object by the rules for clients, as a user does. Its apiVersion decides its
// version; without one, it is the stored version.
func (s *Server) Create(
	gr schema.GroupResource,
	namespace string,
	content map[string]any,
) (map[string]any, error) {
	c := &Request{Verb: "create", Namespace: namespace}
	apiVersion := (&unstructured.Unstructured{Object: content}).GetAPIVersion()
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	c.Body = text
	return s.submit(gr, apiVersion, c)
}

// MergePatch patches an object by the rules for clients, as a user does.
func (s *Server) MergePatch(
	gr schema.GroupResource,
	namespace, name string,
	patch []byte,
) (map[string]any, error) {
	c := &Request{
		Verb: "patch", Namespace: namespace, Name: name, Body: patch,
		ContentType: string(types.MergePatchType),
	}
	return s.submit(gr, "", c)
}

// MergePatchStatus patches the status of an object by the rules for clients, as its controller does.
func (s *Server) MergePatchStatus(
	gr schema.GroupResource,
	namespace, name string,
	patch []byte,
) (map[string]any, error) {
	c := &Request{
		Verb: "patch", Namespace: namespace, Name: name, Subresource: "status", Body: patch,
		ContentType: string(types.MergePatchType),
	}
	return s.submit(gr, "", c)
}

// RequestDeletion deletes an object by the rules for clients, as a user does: an object with finalizers
// is only marked.
func (s *Server) RequestDeletion(gr schema.GroupResource, namespace, name string) error {
	_, err := s.submit(gr, "", &Request{Verb: "delete", Namespace: namespace, Name: name})
	return err
}

// submit answers a request of a user, which is not reported, and returns the stored object.
func (s *Server) submit(
	gr schema.GroupResource,
	apiVersion string,
	c *Request,
) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(gr)
	if t == nil {
		return nil, unserved("%s", gr)
	}
	c.Resource, c.Version = t.resource, t.resource.stored()
	c.Query = url.Values{"fieldValidation": {metav1.FieldValidationStrict}} // as kubectl
	if apiVersion != "" {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err
		}
		if c.Version = t.resource.version(gv); c.Version == nil {
			return nil, unserved("%s of %s", gr.Resource, gv)
		}
	}
	if o := t.objects[keyOf(c.Namespace, c.Name)]; o != nil {
		c.Before = o.content
	}
	o, err := s.do(t, c)
	if err != nil {
		return nil, err
	}
	return o.content, nil
}

// Put stores an object as it is, in the stored version and without the rules for clients. Its
// identity and its creation time are kept if it exists.
func (s *Server) Put(gr schema.GroupResource, content map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(gr)
	if t == nil {
		return unserved("%s", gr)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(t.resource.gvk(t.resource.stored()))
	key := keyOf(u.GetNamespace(), u.GetName())
	if old, ok := t.objects[key]; ok {
		u.SetUID(old.meta().GetUID())
		u.SetCreationTimestamp(old.meta().GetCreationTimestamp())
		u.SetGeneration(old.meta().GetGeneration())
		if !equalExcept(old.content, content, "metadata", "status") {
			u.SetGeneration(old.meta().GetGeneration() + 1)
		}
	} else {
		u.SetUID(uid(t.number, t.created+1))
		u.SetCreationTimestamp(metav1.NewTime(time.Now()))
		u.SetGeneration(1)
	}
	_, err := s.commit(t, key, content)
	return err
}

// Get returns a copy of an object in the stored version, or nil.
func (s *Server) Get(gr schema.GroupResource, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tableOf(gr); t != nil {
		if o, ok := t.objects[keyOf(namespace, name)]; ok {
			return deepCopy(o.content)
		}
	}
	return nil
}

// Delete deletes an object, whatever its finalizers are. It is an error if there is none.
func (s *Server) Delete(gr schema.GroupResource, namespace, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(gr)
	if t == nil {
		return unserved("%s", gr)
	}
	if _, ok := t.objects[keyOf(namespace, name)]; !ok {
		return apierrors.NewNotFound(gr, name)
	}
	_, err := s.erase(t, keyOf(namespace, name))
	return err
}
