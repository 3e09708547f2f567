package virtual

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install" // its versions, defaults and conversions
	"k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	registry "k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
)

// hpaAPI applies the API server's steps between a request and the storage to an HPA: upstream's
// decoding, defaulting, strategy and validation, in the same order.
type hpaAPI struct {
	namespace string
	table     *table[*clientHPA]
	stored    map[string]storedHPA
	uids      int
}

// storedHPA is an HPA in the form that the strategies require, and its bytes without a resource
// version.
type storedHPA struct {
	internal *autoscaling.HorizontalPodAutoscaler
	bytes    []byte
}

var hpaResource = autoscaling.Resource("horizontalpodautoscalers")

// strictJSON decodes any served version with its defaults, as `kubectl --validate=strict`.
// encodeShown encodes the object that a patch is applied to, as the API server does.
var strictJSON, encodeShown = func() (runtime.Decoder, runtime.Encoder) {
	types := apiCodecs.SupportedMediaTypes()
	info, _ := runtime.SerializerInfoForMediaType(types, runtime.ContentTypeJSON)
	hub := schema.GroupVersion{Group: autoscaling.GroupName, Version: runtime.APIVersionInternal}
	return apiCodecs.DecoderToVersion(strict(info), hub),
		apiCodecs.EncoderForVersion(info.Serializer, shownVersion)
}()

func newHPAAPI(namespace string) *hpaAPI {
	table := newTable[*clientHPA]()
	table.apart = true
	return &hpaAPI{namespace: namespace, table: table, stored: map[string]storedHPA{}}
}

// context is the context of a request in a version.
func (a *hpaAPI) context(version, subresource string) context.Context {
	ctx := genericapirequest.WithNamespace(context.Background(), a.namespace)
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true,
		APIGroup:          autoscaling.GroupName,
		APIVersion:        version,
		Namespace:         a.namespace,
		Resource:          hpaResource.Resource,
		Subresource:       subresource,
	})
}

// create stores the user's manifest. It returns the name in the manifest, if there is one.
func (a *hpaAPI) create(manifest []byte) (*shownHPA, string, error) {
	var named struct{ Metadata struct{ Name string } }
	_ = json.Unmarshal(manifest, &named)
	hpa, version, err := decode(manifest)
	if err != nil {
		return nil, named.Metadata.Name, err
	}
	setSystemFields(hpa)
	if err := rest.BeforeCreate(registry.Strategy, a.context(version, ""), hpa); err != nil {
		return nil, hpa.Name, err
	}
	hpa.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.uids+1))
	if hpa.ResourceVersion != "" {
		err := errors.New("resourceVersion should not be set on objects to be created")
		return nil, hpa.Name, apierrors.NewInternalError(err)
	}
	if _, ok := a.table.get(a.namespace, hpa.Name); ok {
		return nil, hpa.Name, apierrors.NewAlreadyExists(hpaResource, hpa.Name)
	}
	stored, err := a.store(hpa)
	if err != nil {
		return nil, hpa.Name, err
	}
	a.uids++
	shown, err := show(stored)
	return shown, hpa.Name, err
}

func decode(manifest []byte) (*autoscaling.HorizontalPodAutoscaler, string, error) {
	kind := shownVersion.WithKind("HorizontalPodAutoscaler")
	into := &autoscaling.HorizontalPodAutoscaler{}
	decoded, gvk, err := strictJSON.Decode(manifest, &kind, into)
	if err == nil {
		if hpa, ok := decoded.(*autoscaling.HorizontalPodAutoscaler); ok {
			return hpa, gvk.Version, nil
		}
		err = fmt.Errorf("it is a %T", decoded)
	}
	if gvk == nil {
		gvk = &kind
	}
	return nil, "", apierrors.NewBadRequest(fmt.Sprintf(
		"%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, kind.Kind, err))
}

// patch applies a JSON merge patch to a stored object in the form of responses.
func (a *hpaAPI) patch(name string, patch []byte) (*shownHPA, error) {
	old, ok := a.stored[name]
	if !ok {
		return nil, apierrors.NewNotFound(hpaResource, name)
	}
	current, _ := a.table.get(a.namespace, name)
	old.internal.ResourceVersion = current.ResourceVersion
	before, err := runtime.Encode(encodeShown, old.internal)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	hpa := &autoscaling.HorizontalPodAutoscaler{}
	if err := runtime.DecodeInto(strictJSON, after, hpa); err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(after), err.Error()),
		})
	}
	if hpa.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", hpa.Name, name))
	}
	stored, err := a.update(registry.Strategy, "", hpa, old)
	if err != nil {
		return nil, err
	}
	return show(stored)
}

// updateStatus is a PUT of the status subresource in a namespace.
func (a *hpaAPI) updateStatus(namespace string, sent *clientHPA) (*clientHPA, error) {
	old, ok := a.stored[sent.Name]
	if !ok || namespace != a.namespace {
		return nil, apierrors.NewNotFound(hpaResource, sent.Name)
	}
	hpa := &autoscaling.HorizontalPodAutoscaler{}
	// A conversion may modify its input.
	if err := apiScheme.Convert(copyOf(sent), hpa, nil); err != nil {
		return nil, err
	}
	return a.update(registry.StatusStrategy, "status", hpa, old)
}

func (a *hpaAPI) update(strategy rest.RESTUpdateStrategy, subresource string,
	hpa *autoscaling.HorizontalPodAutoscaler, old storedHPA,
) (*clientHPA, error) {
	current, _ := a.table.get(a.namespace, hpa.Name)
	if hpa.ResourceVersion != "" && hpa.ResourceVersion != current.ResourceVersion {
		return nil, apierrors.NewConflict(hpaResource, hpa.Name, errOutdated)
	}
	ctx := a.context(shownVersion.Version, subresource)
	old.internal.ResourceVersion = current.ResourceVersion
	hpa.ResourceVersion = current.ResourceVersion
	if err := rest.BeforeUpdate(strategy, ctx, hpa, old.internal); err != nil {
		return nil, err
	}
	return a.store(hpa)
}

// store writes the object. Like the API server, it drops a write without a change.
func (a *hpaAPI) store(hpa *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	hpa.ResourceVersion = ""
	converted := &storageHPA{}
	if err := apiScheme.Convert(hpa, converted, nil); err != nil {
		return nil, err
	}
	stored, bytesStored, err := overTheWire(converted)
	if err == nil {
		bytesStored, err = stable(stored, bytesStored)
	}
	if err != nil {
		return nil, err
	}
	if old, ok := a.stored[hpa.Name]; ok && bytes.Equal(old.bytes, bytesStored) {
		current, _ := a.table.get(a.namespace, hpa.Name)
		return current, nil
	}
	// Readers of the storage see the defaults of the storage version. An object that was created in
	// another version does not have them yet.
	apiScheme.Default(stored)
	internal := &autoscaling.HorizontalPodAutoscaler{}
	if err := apiScheme.Convert(stored, internal, nil); err != nil {
		return nil, err
	}
	served, err := serve(stored, internal)
	if err != nil {
		return nil, err
	}
	a.stored[hpa.Name] = storedHPA{internal: internal, bytes: bytesStored}
	a.table.put(served)
	return served, nil
}

func (a *hpaAPI) delete(name string) error {
	if !a.table.delete(a.namespace, name) {
		return apierrors.NewNotFound(hpaResource, name)
	}
	delete(a.stored, name)
	return nil
}

// overTheWire is the object as API clients receive it: times are in whole seconds, and quantities
// are parsed from their canonical text.
func overTheWire[T any, P wired[T]](hpa P) (P, []byte, error) {
	wire, err := hpa.Marshal()
	if err != nil {
		return nil, nil, err
	}
	read := P(new(T))
	return read, wire, read.Unmarshal(wire)
}

// wired is a pointer to an object that can be sent over the API.
type wired[T any] interface {
	*T
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// validateScale is the API server's validation of a PUT of the scale subresource.
func (c *cluster) validateScale(name string, replicas int32) error {
	scale := &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		Spec:       autoscaling.ScaleSpec{Replicas: replicas},
	}
	if errs := validation.ValidateScale(scale); len(errs) > 0 {
		kind := schema.GroupKind{Group: scaleGroup, Kind: "Scale"}
		return apierrors.NewInvalid(kind, name, errs)
	}
	return nil
}

// statusError is an error in the form in which API clients receive it.
func (e *apiError) statusError() error {
	if e == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    e.code,
		Reason:  metav1.StatusReason(e.reason),
		Message: e.message,
	}}
}
