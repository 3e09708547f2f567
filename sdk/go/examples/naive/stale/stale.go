// Package stale is an HPA controller with a bug that no ordinary run shows: it decides by its cache
// whether the last change of the replicas is done, but reads the replicas that it doubles from the
// API server. If the event of its own write is late, it doubles them twice.
package stale

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Run runs the controller until the context ends. A Deployment and its HPA have the same name.
func Run(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = metricsv1beta1.AddToScheme(scheme)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&metricsv1beta1.PodMetrics{}},
		}},
	})
	if err != nil {
		return err
	}
	sameName := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{
			Namespace: o.GetNamespace(), Name: o.GetName(),
		}}}
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&autoscalingv2.HorizontalPodAutoscaler{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

type reconciler struct{ client.Client }

// Reconcile doubles the replicas if the pods use more than the target, unless they are about to
// change.
func (r *reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: 15 * time.Second}
	hpa, target := &autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.Deployment{}
	if err := r.Get(ctx, q.NamespacedName, hpa); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.Get(ctx, q.NamespacedName, target); err != nil {
		return again, err
	}
	if *target.Spec.Replicas != target.Status.Replicas {
		return again, nil
	}
	overloaded, err := r.isOverloaded(ctx, hpa, target)
	if err != nil || !overloaded {
		return again, err
	}
	scale := &autoscalingv1.Scale{}
	if err := r.SubResource("scale").Get(ctx, target, scale); err != nil {
		return again, err
	}
	scale.Spec.Replicas = min(2*scale.Spec.Replicas, hpa.Spec.MaxReplicas)
	err = r.SubResource("scale").Update(ctx, target, client.WithSubResourceBody(scale))
	if err != nil {
		return again, err
	}
	hpa.Status.DesiredReplicas = scale.Spec.Replicas
	return again, r.Status().Update(ctx, hpa)
}

func (r *reconciler) isOverloaded(
	ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, target *appsv1.Deployment,
) (bool, error) {
	usages := &metricsv1beta1.PodMetricsList{}
	if err := r.List(ctx, usages, client.InNamespace(hpa.Namespace)); err != nil {
		return false, err
	}
	var used int64
	for _, u := range usages.Items {
		for _, c := range u.Containers {
			used += c.Usage.Cpu().MilliValue()
		}
	}
	perPod := hpa.Spec.Metrics[0].Resource.Target.AverageValue.MilliValue()
	return used > perPod*int64(target.Status.Replicas), nil
}
