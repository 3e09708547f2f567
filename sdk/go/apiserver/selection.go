package apiserver

import (
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is the set of objects that a list or a watch is of.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(namespace string, query url.Values) (*selection, error) {
	q := &selection{namespace: namespace}
	var err error
	if q.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if q.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return q, nil
}

func (q *selection) has(o *object) bool {
	if o == nil || q.namespace != "" && !strings.HasPrefix(o.key, q.namespace+"/") ||
		!q.labels.Matches(o.labels) {
		return false
	}
	return q.fields.Empty() || q.fields.Matches(fieldSet{o.content})
}

// fieldSet are the fields of an object by their dotted paths. All fields can be selected by, not only
// those that Kubernetes supports.
type fieldSet struct{ content map[string]any }

func (f fieldSet) Has(field string) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(f.content, path(field)...)
	return ok
}

func (f fieldSet) Get(field string) string {
	value, ok, _ := unstructured.NestedFieldNoCopy(f.content, path(field)...)
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}
