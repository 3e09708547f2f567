package apiserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"kube-lockstep.dev/sdk/apiserver"
)

const servers = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servers.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Server, plural: servers, listKind: ServerList, singular: server}
  versions:
  - &version
    name: v1
    storage: true
    served: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.size <= self.most", message: size must not exceed most}
            properties:
              size: {type: integer, minimum: 0}
              most: {type: integer, default: 10}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}}}
          status:
            type: object
            properties: {size: {type: integer}}
  - {<<: *version, name: v2, storage: false}
`

var serverResource = schema.GroupVersionResource{
	Group:    "example.com",
	Version:  "v1",
	Resource: "servers",
}

func server(version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Server",
		"metadata": map[string]any{"name": "a"}, "spec": spec,
	}}
}

func withServers(t *testing.T, f func(*testing.T, *apiserver.Server, dynamic.ResourceInterface)) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New()
		if err := s.ServeCRD([]byte(servers)); err != nil {
			t.Fatal(err)
		}
		f(t, s, dynamic.NewForConfigOrDie(s.Config("test")).Resource(serverResource).Namespace("default"))
	})
}

func TestCustomResourcesArePrunedDefaultedAndValidated(t *testing.T) {
	withServers(t, func(t *testing.T, _ *apiserver.Server, c dynamic.ResourceInterface) {
		ctx := t.Context()
		o := must(
			c.Create(
				ctx,
				server("v1", map[string]any{"size": int64(2), "no": "where"}),
				metav1.CreateOptions{},
			),
		)
		spec := o.Object["spec"].(map[string]any)
		if spec["most"] != int64(10) || spec["no"] != nil || len(spec) != 2 {
			t.Error(spec)
		}
		for why, patch := range map[string]string{
			"a wrong type":      `{"spec":{"size":"two"}}`,
			"a missing field":   `{"spec":{"size":null}}`,
			"a CEL rule":        `{"spec":{"size":11}}`,
			"a key that occurs": `{"spec":{"ports":[{"name":"x"},{"name":"x"}]}}`,
		} {
			_, err := c.Patch(ctx, "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s: %v", why, err)
			}
		}
		_, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"no":1}}`),
			metav1.PatchOptions{FieldValidation: "Strict"})
		if !apierrors.IsBadRequest(err) {
			t.Error("an unknown field, strict:", err)
		}
	})
}

func TestCustomResourcesHaveSeveralVersions(t *testing.T) {
	withServers(t, func(t *testing.T, s *apiserver.Server, c dynamic.ResourceInterface) {
		ctx := t.Context()
		v2 := serverResource.GroupResource().WithVersion("v2")
		newer := dynamic.NewForConfigOrDie(s.Config("test")).Resource(v2).Namespace("default")
		w := must(newer.Watch(ctx, metav1.ListOptions{}))
		defer w.Stop()
		must(c.Create(ctx, server("v1", map[string]any{"size": int64(2)}), metav1.CreateOptions{}))
		o := must(newer.Get(ctx, "a", metav1.GetOptions{}))
		if o.GetAPIVersion() != "example.com/v2" {
			t.Error(o)
		}
		if e := <-w.ResultChan(); e.Object.(*unstructured.Unstructured).GetAPIVersion() != "example.com/v2" {
			t.Error(e)
		}
		_ = unstructured.SetNestedField(o.Object, int64(3), "spec", "size")
		must(newer.Update(ctx, o, metav1.UpdateOptions{}))
		if o = must(c.Get(ctx, "a", metav1.GetOptions{})); o.GetAPIVersion() != "example.com/v1" ||
			o.GetGeneration() != 2 {
			t.Error(o)
		}
	})
}

func TestCustomResourcesAreApplied(t *testing.T) {
	withServers(t, func(t *testing.T, _ *apiserver.Server, c dynamic.ResourceInterface) {
		ports := func(name string) *unstructured.Unstructured {
			return server(
				"v1",
				map[string]any{"size": int64(1), "ports": []any{map[string]any{"name": name}}},
			)
		}
		must(c.Apply(t.Context(), "a", ports("x"), metav1.ApplyOptions{FieldManager: "one"}))
		o := must(c.Apply(t.Context(), "a", ports("y"), metav1.ApplyOptions{FieldManager: "other"}))
		list, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		if len(list) != 2 {
			t.Error("lists are not merged by their keys:", list)
		}
	})
}

func TestCustomResourcesHaveAScale(t *testing.T) {
	withServers(t, func(t *testing.T, s *apiserver.Server, c dynamic.ResourceInterface) {
		ctx, cfg := t.Context(), s.Config("test")
		must(c.Create(ctx, server("v1", map[string]any{"size": int64(2)}), metav1.CreateOptions{}))
		client := kubernetes.NewForConfigOrDie(cfg)
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
		scales := must(scale.NewForConfig(cfg, mapper, dynamic.LegacyAPIPathResolverFunc,
			scale.NewDiscoveryScaleKindResolver(client.Discovery()))).Scales("default")
		one := must(scales.Get(ctx, serverResource.GroupResource(), "a", metav1.GetOptions{}))
		one.Spec.Replicas = 7
		must(scales.Update(ctx, serverResource.GroupResource(), one, metav1.UpdateOptions{}))
		o := must(c.Get(ctx, "a", metav1.GetOptions{}))
		if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "size"); n != 7 {
			t.Error(o)
		}
	})
}

func TestDefinitionsAreObjects(t *testing.T) {
	withServers(t, func(t *testing.T, s *apiserver.Server, c dynamic.ResourceInterface) {
		ctx := context.Background()
		definitions := dynamic.NewForConfigOrDie(s.Config("test")).Resource(schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		})
		crd := must(definitions.Get(ctx, "servers.example.com", metav1.GetOptions{}))
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		if len(conditions) != 2 {
			t.Error(conditions)
		}
		must(c.Create(ctx, server("v1", map[string]any{"size": int64(2)}), metav1.CreateOptions{}))
		patch := `[{"op":"replace","path":"/spec/versions/0/storage","value":false},
			{"op":"replace","path":"/spec/versions/1/storage","value":true}]`
		must(
			definitions.Patch(
				ctx,
				"servers.example.com",
				types.JSONPatchType,
				[]byte(patch),
				metav1.PatchOptions{},
			),
		)
		if o := must(c.Get(ctx, "a", metav1.GetOptions{})); o.GetAPIVersion() != "example.com/v1" {
			t.Error(o)
		}
		if err := definitions.Delete(ctx, "servers.example.com", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error("after the deletion of the definition:", err)
		}
		err := s.ServeCRD([]byte(strings.Replace(servers, "type: integer", "type: whole", 1)))
		if !apierrors.IsInvalid(err) {
			t.Error("an invalid definition:", err)
		}
	})
}
