package apiserver

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// customSchema prunes, defaults and validates custom resources of one version.
type customSchema struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator // nil without x-kubernetes-validations
	preserves  bool           // unknown fields
}

func newCustomSchema(
	crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion,
) (*customSchema, error) {
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		v.Schema,
		internal,
		nil,
	)
	if err != nil {
		return nil, err
	}
	s := &customSchema{preserves: crd.Spec.PreserveUnknownFields}
	if s.structural, err = structural.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if s.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// customTypes are the types of a custom resource for server-side apply.
func customTypes(
	crd *apiextensionsv1.CustomResourceDefinition,
	version string,
) (managedfields.TypeConverter, error) {
	document, err := builder.BuildOpenAPIV3(crd, version, builder.Options{})
	if err != nil {
		return nil, err
	}
	models := map[string]*spec.Schema{}
	for name, model := range document.Components.Schemas {
		models[name] = model
	}
	return managedfields.NewTypeConverter(models, crd.Spec.PreserveUnknownFields)
}

func (s *customSchema) normalize(
	c *Request,
	content map[string]any,
	strict bool,
) (map[string]any, error) {
	if !s.preserves {
		options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: strict}
		unknown := pruning.PruneWithOptions(content, s.structural, true, options)
		if len(unknown) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf(
				"strict decoding error: unknown field %q", strings.Join(unknown, `", "`)))
		}
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	defaulting.Default(content, s.structural)
	if errors := s.validate(c, content); len(errors) > 0 {
		return nil, c.invalid(errors)
	}
	return content, nil
}

func (s *customSchema) validate(c *Request, content map[string]any) field.ErrorList {
	errors := validation.ValidateCustomResource(nil, content, s.validator)
	errors = append(errors, listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
	if s.rules == nil || len(errors) > 0 {
		return errors
	}
	var old any
	if c.Before != nil {
		before, err := c.Resource.convert(c.Before, c.Version)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		old = before
	}
	found, _ := s.rules.Validate(
		context.Background(), nil, s.structural, content, old, celconfig.RuntimeCELCostBudget)
	return found
}
