package apiserver

import (
	"context"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

const customResourceDefinition = "CustomResourceDefinition"

var definitionResource = schema.GroupResource{
	Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions",
}

func customResourceDefinitions() *Resource {
	gv := schema.GroupVersion{Group: definitionResource.Group, Version: "v1"}
	r := resource(gv, customResourceDefinition, definitionResource.Resource, nil, true)
	r.ClusterScoped = true
	r.ShortNames = []string{"crd", "crds"}
	r.Admit = func(subresource string, before, after map[string]any) (map[string]any, error) {
		if subresource != "" {
			return after, nil
		}
		return admitDefinition(before == nil, after)
	}
	return r
}

// ServeCRD serves a custom resource by the manifest of its CustomResourceDefinition.
func (s *Server) ServeCRD(manifest []byte) error {
	text, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		return err
	}
	content, err := decodeJSON(text)
	if err != nil {
		return err
	}
	_, err = s.Create(definitionResource, "", content)
	return err
}

// admitDefinition defaults and validates a definition. A new one is established at once.
func admitDefinition(isNew bool, content map[string]any) (map[string]any, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(content, crd); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	if isNew {
		now := metav1.NewTime(time.Now())
		for _, condition := range []struct {
			kind   apiextensionsv1.CustomResourceDefinitionConditionType
			reason string
		}{
			{apiextensionsv1.NamesAccepted, "NoConflicts"},
			{apiextensionsv1.Established, "InitialNamesAccepted"},
		} {
			apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: condition.kind, Status: apiextensionsv1.ConditionTrue,
				LastTransitionTime: now, Reason: condition.reason,
			})
		}
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd,
		internal,
		nil,
	)
	if err != nil {
		return nil, err
	}
	// Validation sees a stored object.
	internal.ResourceVersion = "1"
	errors := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal)
	if len(errors) > 0 {
		return nil, apierrors.NewInvalid(apiextensionsv1.Kind(customResourceDefinition), crd.Name, errors)
	}
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return nil, unserved("the conversion webhook of %s", crd.Name)
	}
	return converter.ToUnstructured(crd)
}

// serveDefinition serves the custom resource of a stored definition. The lock is held.
func (s *Server) serveDefinition(content map[string]any) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, crd); err != nil {
		return err
	}
	r := &Resource{
		Kind: crd.Spec.Names.Kind, Plural: crd.Spec.Names.Plural, ShortNames: crd.Spec.Names.ShortNames,
		Categories:    crd.Spec.Names.Categories,
		ClusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
	}
	for i := range crd.Spec.Versions {
		v, err := customVersion(crd, &crd.Spec.Versions[i])
		if err != nil {
			return err
		}
		r.Versions = append(r.Versions, v)
	}
	slices.SortStableFunc(r.Versions, func(a, b *Version) int {
		return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	t := s.tableOf(r.GroupResource())
	if t == nil {
		s.serve(r)
		return nil
	}
	t.resource = r
	return t.restore()
}

// restore changes the version of stored objects after a change of the stored version.
func (t *table) restore() error {
	for _, key := range t.keys {
		content, err := t.resource.convert(t.objects[key].content, t.resource.stored())
		if err != nil {
			return err
		}
		if t.objects[key], err = makeObject(key, content); err != nil {
			return err
		}
	}
	return nil
}

// withdraw stops serving the custom resource of a deleted definition.
func (s *Server) withdraw(definition map[string]any) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition, crd); err != nil {
		return err
	}
	t := s.tableOf(schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
	if t == nil {
		return nil
	}
	for _, key := range slices.Clone(t.keys) {
		if _, err := s.commit(t, key, nil); err != nil {
			return err
		}
	}
	r := *t.resource
	r.Versions = nil
	for _, v := range t.resource.Versions {
		hidden := *v
		hidden.Unserved = true
		r.Versions = append(r.Versions, &hidden)
	}
	t.resource = &r
	return nil
}

func customVersion(
	crd *apiextensionsv1.CustomResourceDefinition,
	from *apiextensionsv1.CustomResourceDefinitionVersion,
) (*Version, error) {
	v := &Version{
		GroupVersion: schema.GroupVersion{Group: crd.Spec.Group, Version: from.Name},
		Stored:       from.Storage, Unserved: !from.Served,
	}
	if sub := from.Subresources; sub != nil {
		v.Status = sub.Status != nil
		if scale := sub.Scale; scale != nil {
			v.Scale = &Scale{
				Replicas:       path(scale.SpecReplicasPath),
				StatusReplicas: path(scale.StatusReplicasPath),
			}
			if scale.LabelSelectorPath != nil {
				v.Scale.Selector = path(*scale.LabelSelectorPath)
			}
		}
	}
	if from.Schema == nil || from.Schema.OpenAPIV3Schema == nil {
		return v, nil
	}
	var err error
	if v.schema, err = newCustomSchema(crd, from); err != nil {
		return nil, err
	}
	v.types, err = customTypes(crd, from.Name)
	return v, err
}
