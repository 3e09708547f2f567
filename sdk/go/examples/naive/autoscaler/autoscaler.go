// Package autoscaler is a naive HPA controller: every 15 s, it sets the replicas to the usage of CPU
// divided by the target. It knows no tolerance, no stabilization, no policies and no other metrics.
package autoscaler

import (
	"context"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// period is the time between two reconciles of an HPA.
const period = 15 * time.Second

// Run runs the controller until the context ends.
func Run(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = metricsv1beta1.AddToScheme(scheme)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Controllers have unique names in a process, which runs many scenarios.
		Controller: config.Controller{SkipNameValidation: new(true)},
		// The metrics API can't be watched, and the scale is read as it is.
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&metricsv1beta1.PodMetrics{}, &appsv1.Deployment{}},
		}},
	})
	if err != nil {
		return err
	}
	r := &reconciler{mgr.GetClient(), mgr.GetEventRecorder("naive")}
	// A reconcile writes the status. It must not cause the next one.
	err = ctrl.NewControllerManagedBy(mgr).
		For(&autoscalingv2.HorizontalPodAutoscaler{},
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

type reconciler struct {
	client.Client
	events events.EventRecorder
}

// Reconcile sets the replicas of the target of an HPA.
func (r *reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: period}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := r.Get(ctx, q.NamespacedName, hpa); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	target := &appsv1.Deployment{}
	target.Name, target.Namespace = hpa.Spec.ScaleTargetRef.Name, hpa.Namespace
	scale := &autoscalingv1.Scale{}
	if err := r.SubResource("scale").Get(ctx, target, scale); err != nil {
		return again, err
	}
	wants, err := r.wants(ctx, hpa, scale)
	if err != nil || wants == 0 {
		return again, err
	}
	if wants != scale.Spec.Replicas {
		scale.Spec.Replicas = wants
		err := r.SubResource("scale").Update(ctx, target, client.WithSubResourceBody(scale))
		if err != nil {
			return again, err
		}
		r.events.Eventf(hpa, nil, corev1.EventTypeNormal, "Scaled", "Scale", "New size: %d", wants)
	}
	if hpa.Status.DesiredReplicas != wants {
		hpa.Status.DesiredReplicas, hpa.Status.CurrentReplicas = wants, scale.Status.Replicas
		return again, r.Status().Update(ctx, hpa)
	}
	return again, nil
}

// wants returns the replicas that the usage of CPU requires, or 0 if it is not known.
func (r *reconciler) wants(
	ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, scale *autoscalingv1.Scale,
) (int32, error) {
	selector, err := metav1.ParseToLabelSelector(scale.Status.Selector)
	if err != nil {
		return 0, err
	}
	pods, usages := &corev1.PodList{}, &metricsv1beta1.PodMetricsList{}
	options := []client.ListOption{
		client.InNamespace(hpa.Namespace), client.MatchingLabels(selector.MatchLabels),
	}
	if err := r.List(ctx, pods, options...); err != nil {
		return 0, err
	}
	if err := r.List(ctx, usages, options...); err != nil {
		return 0, err
	}
	var used, requested int64
	for _, u := range usages.Items {
		for _, c := range u.Containers {
			used += c.Usage.Cpu().MilliValue()
		}
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			requested += c.Resources.Requests.Cpu().MilliValue()
		}
	}
	metric := hpa.Spec.Metrics[0].Resource
	if requested == 0 || metric == nil || metric.Target.AverageUtilization == nil {
		return 0, nil
	}
	ratio := float64(used*100) / float64(requested) / float64(*metric.Target.AverageUtilization)
	return min(int32(math.Ceil(ratio*float64(len(usages.Items)))), hpa.Spec.MaxReplicas), nil
}
