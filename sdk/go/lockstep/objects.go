package lockstep

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"kube-lockstep.dev/sdk/apiserver"
)

// objectRef names an object of any kind.
type objectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

// objectEdit is a JSON merge patch of an object.
type objectEdit struct {
	objectRef
	Subresource string          `json:"subresource"`
	Patch       json.RawMessage `json:"patch"`
}

// objectWrite is a write of an object, and its result.
type objectWrite struct {
	Verb        string         `json:"verb"`
	Controller  string         `json:"controller,omitempty"`
	APIVersion  string         `json:"apiVersion"`
	Kind        string         `json:"kind"`
	Resource    string         `json:"resource"`
	Namespace   string         `json:"namespace,omitempty"`
	Name        string         `json:"name"`
	Subresource string         `json:"subresource,omitempty"`
	Changed     bool           `json:"changed"`
	Object      map[string]any `json:"object,omitempty"`
	Error       string         `json:"error,omitempty"`
}

// writeTo is a write of an object that has no result yet.
func writeTo(r *apiserver.Resource, namespace, name string) *objectWrite {
	if r.ClusterScoped {
		namespace = ""
	}
	return &objectWrite{
		APIVersion: r.StoredVersion().String(), Kind: r.Kind, Resource: r.GroupResource().String(),
		Namespace: namespace, Name: name,
	}
}

// of reports whether a change is of the object of the write.
func (w *objectWrite) of(c apiserver.Change) bool {
	return c.Resource.GroupResource().String() == w.Resource && c.Name == w.Name &&
		c.Namespace == w.Namespace
}

// follow sets the result of the write, from the changes that it caused, and returns those of other
// objects. present is the object if the write did not change it.
func (w *objectWrite) follow(
	changes []apiserver.Change,
	present map[string]any,
	err error,
) (others []apiserver.Change) {
	after := present
	for _, c := range changes {
		if w.of(c) {
			w.Changed, after = true, c.After
		} else {
			others = append(others, c)
		}
	}
	if err != nil {
		w.Error = err.Error()
		return others
	}
	w.Object = withoutManagedFields(after)
	return others
}

// withoutManagedFields returns an object as it is reported.
func withoutManagedFields(content map[string]any) map[string]any {
	meta, ok := content["metadata"].(map[string]any)
	if _, managed := meta["managedFields"]; !ok || !managed {
		return content
	}
	shown := func(from map[string]any, without string) map[string]any {
		made := make(map[string]any, len(from))
		for k, v := range from {
			if k != without {
				made[k] = v
			}
		}
		return made
	}
	made := shown(content, "metadata")
	made["metadata"] = shown(meta, "managedFields")
	return made
}

// objectWrites records what a request of the controller wrote, and what the API server did with other
// objects because of it.
func (o *observed) objectWrites(c *apiserver.Request) {
	switch {
	case c.Resource.Kind == "Event" || c.Query.Get("dryRun") != "":
		return
	case c.Verb == "deletecollection":
		for _, change := range c.Changes {
			controller := ""
			if change.Resource == c.Resource {
				controller = c.Controller
			}
			o.changed(change, controller, "delete")
		}
		return
	}
	w := writeTo(c.Resource, c.Namespace, c.Name)
	w.Verb, w.Controller, w.Subresource = c.Verb, c.Controller, c.Subresource
	others := w.follow(c.Changes, c.Object, c.Err)
	o.record(nil, "write", w)
	for _, change := range others {
		o.changed(change, "", "")
	}
}

// changed records a change of an object. Without a controller, the cluster itself made it.
func (o *observed) changed(c apiserver.Change, controller, verb string) {
	if !o.objects || c.Resource.Kind == "Event" {
		return
	}
	w := writeTo(c.Resource, c.Namespace, c.Name)
	w.Controller, w.Changed, w.Object = controller, true, withoutManagedFields(c.After)
	switch {
	case verb != "":
		w.Verb = verb
	case c.Before == nil:
		w.Verb = "create"
	case c.After == nil:
		w.Verb = "delete"
	default:
		w.Verb = "update"
	}
	o.record(nil, "write", w)
}

// create creates the objects that exist before the controller starts.
func (w *world) create(manifests []json.RawMessage) error {
	for _, manifest := range manifests {
		write, err := w.applyObject(manifest)
		if err != nil {
			return err
		}
		if write.Error != "" {
			return fmt.Errorf("the API server rejects %s %s of `objects`: %s",
				write.Kind, write.Name, write.Error)
		}
		w.observed.record(nil, "write", write)
	}
	return nil
}

// applyObject creates an object, or changes it as kubectl apply does: fields that the last manifest
// had and this one does not are removed, and those of others are kept.
func (w *world) applyObject(manifest json.RawMessage) (*objectWrite, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(manifest, &content); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	return w.writeObject("patch", objectRef{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), Namespace: u.GetNamespace(),
	}, func(r *apiserver.Resource, write *objectWrite) error {
		status, hasStatus := content["status"]
		if hasStatus = hasStatus && r.StoredVersion().Status; hasStatus {
			delete(content, "status")
		}
		modified, err := json.Marshal(content)
		if err != nil {
			return err
		}
		key := write.Resource + "/" + write.Namespace + "/" + write.Name
		gr, original := r.GroupResource(), w.applied[key]
		if present := w.server.Get(gr, write.Namespace, write.Name); present == nil {
			write.Verb = "create"
			_, err = w.server.Create(gr, write.Namespace, content)
		} else {
			var current, patch []byte
			if current, err = json.Marshal(present); err != nil {
				return err
			}
			patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
			if err == nil {
				_, err = w.server.MergePatch(gr, write.Namespace, write.Name, patch)
			}
		}
		if err != nil {
			return err
		}
		w.applied[key] = modified
		if !hasStatus {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"status": status})
		if err == nil {
			_, err = w.server.MergePatchStatus(gr, write.Namespace, write.Name, patch)
		}
		return err
	})
}

func (w *world) patchObject(edit *objectEdit) (*objectWrite, error) {
	return w.writeObject("patch", edit.objectRef,
		func(r *apiserver.Resource, write *objectWrite) (err error) {
			write.Subresource = edit.Subresource
			gr := r.GroupResource()
			if edit.Subresource == "status" {
				_, err = w.server.MergePatchStatus(gr, write.Namespace, write.Name, edit.Patch)
			} else {
				_, err = w.server.MergePatch(gr, write.Namespace, write.Name, edit.Patch)
			}
			return err
		})
}

func (w *world) deleteObject(ref *objectRef) (*objectWrite, error) {
	return w.writeObject("delete", *ref, func(r *apiserver.Resource, write *objectWrite) error {
		return w.server.RequestDeletion(r.GroupResource(), write.Namespace, write.Name)
	})
}

// writeObject makes a change of an object, and returns the answer: the API server's error is one.
func (w *world) writeObject(
	verb string,
	ref objectRef,
	change func(*apiserver.Resource, *objectWrite) error,
) (*objectWrite, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	gvk := gv.WithKind(ref.Kind)
	namespace := ref.Namespace
	if namespace == "" {
		namespace = w.namespace
	}
	r := w.server.ResourceOf(gvk)
	if r == nil {
		return &objectWrite{
			Verb: verb, APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace,
			Name: ref.Name, Error: fmt.Sprintf("the API server does not serve the kind %s of %s", gvk.Kind, gv),
		}, nil
	}
	write := writeTo(r, namespace, ref.Name)
	write.Verb = verb
	var changes []apiserver.Change
	w.changed = func(c apiserver.Change) { changes = append(changes, c) }
	err = change(r, write)
	w.changed = nil
	present := w.server.Get(r.GroupResource(), write.Namespace, write.Name)
	for _, c := range write.follow(changes, present, err) {
		w.observed.changed(c, "", "")
	}
	return write, nil
}
