package apiserver

import (
	"encoding/json"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

func (s *Server) patch(t *table, c *Request) (*object, error) {
	switch types.PatchType(c.ContentType) {
	case types.ApplyYAMLPatchType:
		return s.serverSideApply(t, c)
	case types.ApplyCBORPatchType:
		return nil, unsupportedMediaType(c.ContentType)
	}
	patch, err := patcher(c.Resource.gvk(c.Version), types.PatchType(c.ContentType), c.Body)
	if err != nil {
		return nil, err
	}
	return s.write(t, c, write{change: func(current map[string]any) (map[string]any, error) {
		if c.Subresource == "scale" {
			return current, c.patchScale(current, patch)
		}
		made, err := patched(current, patch)
		if err != nil {
			return nil, err
		}
		return s.track(c, current, made)
	}})
}

// patched returns an object after a patch.
func patched(content any, patch func([]byte) ([]byte, error)) (map[string]any, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if text, err = patch(text); err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
			schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return decodeJSON(text)
}

// patcher returns the effect of a patch on the JSON of an object.
func patcher(
	gvk schema.GroupVersionKind, kind types.PatchType, patch []byte,
) (func([]byte) ([]byte, error), error) {
	switch kind {
	case types.MergePatchType:
		return func(o []byte) ([]byte, error) { return jsonpatch.MergePatch(o, patch) }, nil
	case types.JSONPatchType:
		made, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return made.Apply, nil
	case types.StrategicMergePatchType:
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			// As a real API server answers for custom resources.
			return nil, unsupportedMediaType(string(kind))
		}
		return func(o []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(o, patch, typed)
		}, nil
	}
	return nil, unsupportedMediaType(string(kind))
}
