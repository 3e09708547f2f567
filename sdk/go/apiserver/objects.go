package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// object is a stored object. It is never changed.
type object struct {
	key     string // namespace/name
	labels  labels.Set
	content map[string]any
	json    []byte
}

func makeObject(key string, content map[string]any) (*object, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: content}
	return &object{key: key, labels: u.GetLabels(), content: content, json: text}, nil
}

func (o *object) meta() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.content}
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

// versionText is a resource version as clients see it.
func versionText(version int64) string { return strconv.FormatInt(version, 10) }

func uid(table, n int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8%03x-%012d", table, n))
}

func deepCopy(content map[string]any) map[string]any { return runtime.DeepCopyJSON(content) }

func shallow(content map[string]any) map[string]any {
	made := make(map[string]any, len(content)+2)
	for k, v := range content {
		made[k] = v
	}
	return made
}

// equalExcept reports whether two objects are equal, apart from some fields at the top.
func equalExcept(a, b map[string]any, except ...string) bool {
	for k := range a {
		if _, ok := b[k]; !ok && !slices.Contains(except, k) {
			return false
		}
	}
	for k, v := range b {
		if !slices.Contains(except, k) && !equality.Semantic.DeepEqual(a[k], v) {
			return false
		}
	}
	return true
}

// keep sets a field of an object to its value in another one.
func keep(in, from map[string]any, field string) {
	if value, ok := from[field]; ok {
		in[field] = value
	} else {
		delete(in, field)
	}
}

func number(content map[string]any, path []string) int64 {
	n, _, _ := unstructured.NestedInt64(content, path...)
	return n
}
