package apiserver

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scale returns the scale subresource of an object.
func (c *Request) scale(content map[string]any) *autoscalingv1.Scale {
	u := &unstructured.Unstructured{Object: content}
	paths := c.Version.Scale
	scale := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(number(content, paths.Replicas))},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(number(content, paths.StatusReplicas))},
	}
	if len(paths.Selector) > 0 {
		selector, _, _ := unstructured.NestedFieldNoCopy(content, paths.Selector...)
		scale.Status.Selector = selectorText(c.Resource.Kind, selector)
	}
	return scale
}

// selectorText is a selector as the scale shows it: of a string, a LabelSelector, or the labels in
// the selector of a ReplicationController.
func selectorText(kind string, selector any) string {
	switch selector := selector.(type) {
	case string:
		return selector
	case map[string]any:
		made := &metav1.LabelSelector{}
		if kind == "ReplicationController" {
			selector = map[string]any{"matchLabels": selector}
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, made) == nil {
			return metav1.FormatLabelSelector(made)
		}
	}
	return ""
}

// setScale makes the change of an object that an update of its scale means.
func (c *Request) setScale(content, sent map[string]any) error {
	replicas := number(sent, []string{"spec", "replicas"})
	u := &unstructured.Unstructured{Object: sent}
	if name := u.GetName(); name != "" && name != c.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the scale (%s) does not match the name "+
			"on the URL (%s)", name, c.Name))
	}
	if replicas < 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, c.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), replicas,
				"must be greater than or equal to 0")})
	}
	if version := u.GetResourceVersion(); version != "" {
		(&unstructured.Unstructured{Object: content}).SetResourceVersion(version)
	}
	return unstructured.SetNestedField(content, replicas, c.Version.Scale.Replicas...)
}

// patchScale applies a patch to the scale, and the scale to the object.
func (c *Request) patchScale(content map[string]any, patch func([]byte) ([]byte, error)) error {
	sent, err := patched(c.scale(content), patch)
	if err != nil {
		return err
	}
	return c.setScale(content, sent)
}
