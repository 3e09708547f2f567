package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// write is a write of an object by a client.
type write struct {
	mustBeNew, mayBeNew bool
	// change gets a copy of the current object, or nil, and returns the new one, both in the version
	// of the request.
	change func(current map[string]any) (map[string]any, error)
}

func (s *Server) create(t *table, c *Request) (*object, error) {
	sent, err := c.decode()
	if err != nil {
		return nil, err
	}
	if c.Name != "" {
		return nil, unserved("POST of the subresource %s", c.Subresource)
	}
	u := &unstructured.Unstructured{Object: sent}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(fmt.Sprintf("%s%05d", u.GetGenerateName(), t.created+1))
	}
	// client-go names an event by the time, so two events of one object at one instant have the same
	// name. On a real cluster, time passes between them.
	for c.Resource.Kind == "Event" && t.objects[keyOf(c.Namespace, u.GetName())] != nil {
		u.SetName(fmt.Sprintf("%s-%d", u.GetName(), t.created+1))
	}
	if c.Name = u.GetName(); c.Name == "" {
		return nil, c.invalid(field.ErrorList{field.Required(field.NewPath("metadata", "name"),
			"name or generateName is required")})
	}
	return s.write(t, c, write{mustBeNew: true, change: func(map[string]any) (map[string]any, error) {
		return s.track(c, nil, sent)
	}})
}

func (s *Server) update(t *table, c *Request) (*object, error) {
	sent, err := c.decode()
	if err != nil {
		return nil, err
	}
	if c.Subresource == "scale" {
		return s.write(t, c, write{change: func(o map[string]any) (map[string]any, error) {
			return o, c.setScale(o, sent)
		}})
	}
	return s.write(t, c, write{change: func(current map[string]any) (map[string]any, error) {
		return s.track(c, current, sent)
	}})
}

// write makes a change by the rules of the API: conflicts, the fields that clients can't set,
// subresources, generations, defaults and validation.
func (s *Server) write(t *table, c *Request, w write) (*object, error) {
	key := keyOf(c.Namespace, c.Name)
	present := t.objects[key]
	switch {
	case present == nil && !w.mustBeNew && !w.mayBeNew && c.Subresource == "scale" &&
		scheme.Scheme.Recognizes(c.Resource.gvk(c.Version)):
		// As the storage of built-in kinds answers.
		gr := c.Resource.GroupResource()
		gr.Resource += "/scale"
		return nil, apierrors.NewNotFound(gr, c.Name)
	case present == nil && !w.mustBeNew && !w.mayBeNew:
		return nil, notFound(t.resource, key)
	case present != nil && w.mustBeNew:
		return nil, apierrors.NewAlreadyExists(t.resource.GroupResource(), c.Name)
	}
	var before, after map[string]any
	var err error
	if present == nil {
		after, err = w.change(nil)
	} else {
		before = present.content
		if after, err = c.Resource.convert(deepCopy(before), c.Version); err == nil {
			after, err = w.change(after)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := c.checkIdentity(after); err != nil {
		return nil, err
	}
	if after, err = c.normalize(after); err != nil {
		return nil, err
	}
	if after, err = t.resource.store(after, c.Version); err != nil {
		return nil, err
	}
	if after, err = c.prepare(t, before, after); err != nil {
		return nil, err
	}
	if after, err = c.admit(before, after); err != nil {
		return nil, err
	}
	return s.finish(t, c, present, after)
}

// checkIdentity compares the object with the path.
func (c *Request) checkIdentity(content map[string]any) error {
	u := &unstructured.Unstructured{Object: content}
	gvk := c.Resource.gvk(c.Version)
	if kind := u.GetKind(); kind != "" && kind != gvk.Kind ||
		u.GetAPIVersion() != "" && u.GetAPIVersion() != gvk.GroupVersion().String() {
		return apierrors.NewBadRequest(fmt.Sprintf("the object is %s %s, but the path is of %s %s",
			u.GetAPIVersion(), u.GetKind(), gvk.GroupVersion(), gvk.Kind))
	}
	if name := u.GetName(); name != "" && name != c.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the "+
			"name on the URL (%s)", name, c.Name))
	}
	if namespace := u.GetNamespace(); namespace != "" && namespace != c.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the " +
			"namespace sent on the request")
	}
	u.SetGroupVersionKind(gvk)
	u.SetName(c.Name)
	if !c.Resource.ClusterScoped {
		u.SetNamespace(c.Namespace)
	}
	return nil
}

// normalize drops unknown fields, and checks the types of the others. It also defaults and validates
// custom resources.
func (c *Request) normalize(content map[string]any) (map[string]any, error) {
	strict := c.Query.Get("fieldValidation") == metav1.FieldValidationStrict
	if c.Version.schema != nil {
		return c.Version.schema.normalize(c, content, strict)
	}
	gvk := c.Resource.gvk(c.Version)
	if !scheme.Scheme.Recognizes(gvk) {
		return content, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	decoder := lenient
	if strict {
		decoder = exact
	}
	typed, _, err := decoder.Decode(text, &gvk, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err))
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}

// The decoders of an API server, by the parameter fieldValidation of a request.
var (
	lenient = serializer.NewSerializerWithOptions(
		serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, serializer.SerializerOptions{})
	exact = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme.Scheme,
		scheme.Scheme, serializer.SerializerOptions{Strict: true})
)

// prepare sets the metadata and the fields that the request can't change. before and after are in the
// stored version.
func (c *Request) prepare(t *table, before, after map[string]any) (map[string]any, error) {
	u := &unstructured.Unstructured{Object: after}
	hasStatus := c.Version.Status
	if before == nil {
		if version := u.GetResourceVersion(); version != "" {
			return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
		}
		u.SetUID(uid(t.number, t.created+1))
		u.SetCreationTimestamp(metav1.NewTime(time.Now()))
		u.SetDeletionTimestamp(nil)
		u.SetGeneration(0)
		if !t.resource.OwnGeneration {
			u.SetGeneration(1)
		}
		if hasStatus {
			delete(after, "status")
		}
		return after, nil
	}
	old := &unstructured.Unstructured{Object: before}
	if version := u.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(t.resource.GroupResource(), c.Name, fmt.Errorf("the object "+
			"has been modified; please apply your changes to the latest version and try again"))
	}
	if id := u.GetUID(); id != "" && id != old.GetUID() {
		return nil, apierrors.NewConflict(t.resource.GroupResource(), c.Name, fmt.Errorf(
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", id, old.GetUID()))
	}
	switch {
	case c.Subresource == "status":
		managed := u.GetManagedFields()
		status := after
		after = deepCopy(before)
		keep(after, status, "status")
		u.Object = after
		u.SetManagedFields(managed)
	case hasStatus:
		keep(after, before, "status")
	}
	u.SetUID(old.GetUID())
	u.SetCreationTimestamp(old.GetCreationTimestamp())
	u.SetDeletionTimestamp(old.GetDeletionTimestamp())
	u.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	u.SetResourceVersion(old.GetResourceVersion())
	u.SetGeneration(old.GetGeneration())
	return after, nil
}

// admit applies the defaults and the validation of the resource, and counts the generation.
func (c *Request) admit(before, after map[string]any) (map[string]any, error) {
	if c.Resource.Admit != nil {
		var err error
		if after, err = c.Resource.Admit(c.Subresource, before, after); err != nil {
			return nil, err
		}
	}
	if before != nil && !c.Resource.OwnGeneration &&
		!equalExcept(before, after, "metadata", "status") {
		u := &unstructured.Unstructured{Object: after}
		u.SetGeneration((&unstructured.Unstructured{Object: before}).GetGeneration() + 1)
	}
	return after, nil
}

// finish stores an object, unless nothing has changed or the last finalizer was removed.
func (s *Server) finish(
	t *table,
	c *Request,
	present *object,
	after map[string]any,
) (*object, error) {
	key := keyOf(c.Namespace, c.Name)
	if present != nil && equalExcept(present.content, after) {
		return present, nil
	}
	if c.dryRun() {
		return makeObject(key, after)
	}
	u := &unstructured.Unstructured{Object: after}
	if present != nil && u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		return s.erase(t, key)
	}
	o, err := s.commit(t, key, after)
	if err == nil && c.Resource.Kind == customResourceDefinition {
		err = s.serveDefinition(o.content)
	}
	if err == nil && present == nil {
		return o, s.collectOrphan(t, o)
	}
	if err != nil {
		return o, err
	}
	return o, s.released(present)
}

// collectOrphan deletes a new object of a client if all of its owners are gone, as the garbage
// collector does.
func (s *Server) collectOrphan(t *table, o *object) error {
	owners := o.meta().GetOwnerReferences()
	exists := func(owner metav1.OwnerReference) bool { _, ok := s.byUID[owner.UID]; return ok }
	if s.current == nil || len(owners) == 0 || slices.ContainsFunc(owners, exists) {
		return nil
	}
	_, err := s.remove(t, o.key, &metav1.DeleteOptions{})
	return err
}

// released finishes the deletion of owners that waited for this object, which may have fewer owners.
func (s *Server) released(before *object) error {
	for _, owner := range before.meta().GetOwnerReferences() {
		if err := s.finishForeground(owner.UID); err != nil {
			return err
		}
	}
	return nil
}

func (c *Request) invalid(errors field.ErrorList) error {
	return apierrors.NewInvalid(c.Resource.gvk(c.Version).GroupKind(), c.Name, slices.Clone(errors))
}
