package main

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install" // its versions, defaults and conversions
	registry "k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"kube-lockstep.dev/sdk/lockstep"
)

const hpaKind = "HorizontalPodAutoscaler"

var hpas = schema.GroupResource{Group: autoscaling.GroupName, Resource: "horizontalpodautoscalers"}

// prepare serves HPAs as the real API server does: with upstream's defaults and validation.
func prepare(run *lockstep.Run) error {
	if err := setGates(run.FeatureGates); err != nil {
		return err
	}
	// Jitter is random.
	retry.DefaultRetry.Jitter, retry.DefaultBackoff.Jitter = 0, 0
	r := run.Server.Resource(hpas)
	r.OwnGeneration = true
	r.Admit = admission{namespace: run.Namespace}.admit
	return nil
}

// gatesBefore are the feature gates that the previous scenario has set, as they were before: gates
// are global.
var gatesBefore = map[string]bool{}

func setGates(gates map[string]bool) error {
	set := utilfeature.DefaultMutableFeatureGate.SetFromMap
	if err := set(gatesBefore); err != nil {
		return err
	}
	clear(gatesBefore)
	for gate := range gates {
		gatesBefore[gate] = utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(gate))
	}
	return set(gates)
}

// admission applies the strategies of the real API server to HPAs.
type admission struct{ namespace string }

func (a admission) admit(subresource string, before, after map[string]any) (map[string]any, error) {
	ctx := genericapirequest.WithNamespace(context.Background(), a.namespace)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: hpas.Group, APIVersion: "v2", Namespace: a.namespace,
		Resource: hpas.Resource, Subresource: subresource,
	})
	hpa, err := internal(after)
	if err != nil {
		return nil, err
	}
	if before == nil {
		uid, created := hpa.UID, hpa.CreationTimestamp
		if err := rest.BeforeCreate(registry.Strategy, ctx, hpa); err != nil {
			return nil, err
		}
		hpa.UID, hpa.CreationTimestamp = uid, created
		return versioned(hpa)
	}
	old, err := internal(before)
	if err != nil {
		return nil, err
	}
	hpa.ResourceVersion, hpa.Generation = old.ResourceVersion, old.Generation
	var strategy rest.RESTUpdateStrategy = registry.Strategy
	if subresource == "status" {
		strategy = registry.StatusStrategy
	}
	if err := rest.BeforeUpdate(strategy, ctx, hpa, old); err != nil {
		return nil, err
	}
	return versioned(hpa)
}

// internal decodes and defaults an object.
func internal(content map[string]any) (*autoscaling.HorizontalPodAutoscaler, error) {
	typed := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	legacyscheme.Scheme.Default(typed)
	hpa := &autoscaling.HorizontalPodAutoscaler{}
	if err := legacyscheme.Scheme.Convert(typed, hpa, nil); err != nil {
		return nil, err
	}
	return hpa, nil
}

// versioned encodes an object as autoscaling/v2.
func versioned(hpa *autoscaling.HorizontalPodAutoscaler) (map[string]any, error) {
	typed := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := legacyscheme.Scheme.Convert(hpa, typed, nil); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind(hpaKind))
	return content, nil
}
