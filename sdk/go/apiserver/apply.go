package apiserver

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// serverSideApply applies a configuration with the field manager of a real API server.
func (s *Server) serverSideApply(t *table, c *Request) (*object, error) {
	if c.Subresource == "scale" {
		return nil, unserved("server-side apply to the subresource scale")
	}
	if c.Query.Get("fieldManager") == "" {
		return nil, apierrors.NewBadRequest("fieldManager is required for apply patch")
	}
	text, err := yaml.YAMLToJSON(c.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	sent := map[string]any{}
	if err := utiljson.Unmarshal(text, &sent); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	manager, err := c.fieldManager()
	if err != nil {
		return nil, err
	}
	return s.write(t, c, write{
		mayBeNew: c.Subresource == "",
		change: func(current map[string]any) (map[string]any, error) {
			made, err := manager.Apply(c.live(current), &unstructured.Unstructured{Object: sent},
				c.Query.Get("fieldManager"), c.Query.Get("force") == "true")
			if err != nil {
				return nil, err
			}
			return made.(*unstructured.Unstructured).Object, nil
		},
	})
}

// track updates the managed fields of an object after a write that is not an apply. They are
// recorded from the first apply on: before it, nothing depends on them, and they take time.
func (s *Server) track(c *Request, current, sent map[string]any) (map[string]any, error) {
	if current == nil || len((&unstructured.Unstructured{Object: current}).GetManagedFields()) == 0 {
		unstructured.RemoveNestedField(sent, "metadata", "managedFields")
		return sent, nil
	}
	manager, err := c.fieldManager()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: sent}
	u.SetGroupVersionKind(c.Resource.gvk(c.Version))
	made, err := manager.Update(c.live(current), u, c.Query.Get("fieldManager"))
	if err != nil {
		return nil, err
	}
	return made.(*unstructured.Unstructured).Object, nil
}

func (c *Request) live(current map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: current}
	if current == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(c.Resource.gvk(c.Version))
	return u
}

// builtinTypes are the types of client-go's kinds, parsed once per process.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

func (c *Request) fieldManager() (*managedfields.FieldManager, error) {
	gvk := c.Resource.gvk(c.Version)
	same := oneVersion{}
	switch {
	case c.Version.types != nil:
		return managedfields.NewDefaultCRDFieldManager(c.Version.types, same, same, same,
			gvk, gvk.GroupVersion(), c.Subresource, nil)
	case scheme.Scheme.Recognizes(gvk):
		return managedfields.NewDefaultFieldManager(builtinTypes(), same, same, same,
			gvk, gvk.GroupVersion(), c.Subresource, nil)
	}
	return managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(),
		same, same, same, gvk, gvk.GroupVersion(), c.Subresource, nil)
}

// oneVersion stands for the conversion between versions: the field manager gets all objects in the
// version of the request.
type oneVersion struct{}

func (oneVersion) Convert(in, out, _ any) error {
	out.(*unstructured.Unstructured).Object = in.(*unstructured.Unstructured).Object
	return nil
}

func (oneVersion) ConvertToVersion(
	o runtime.Object,
	_ runtime.GroupVersioner,
) (runtime.Object, error) {
	return o, nil
}

func (oneVersion) ConvertFieldLabel(
	_ schema.GroupVersionKind, label, value string,
) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
