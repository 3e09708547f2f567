// Package site is a controller of a custom resource: it serves each Website by a Deployment, and reports
// in the status of the Website whether all replicas are ready.
package site

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs the controller until the context ends.
func Run(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Controllers have unique names in a process, which runs many scenarios.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&Website{}).Owns(&appsv1.Deployment{}).
		Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

type reconciler struct{ client.Client }

// Reconcile creates or corrects the Deployment of a Website, and writes its status.
func (r *reconciler) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	site := &Website{}
	if err := r.Get(ctx, q.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	served := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, served, func() error {
		labels := map[string]string{"website": site.Name}
		served.Spec.Replicas = new(site.Spec.Replicas)
		served.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		served.Spec.Template.Labels = labels
		served.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: site.Spec.Image}}
		return controllerutil.SetControllerReference(site, served, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := site.deepCopy()
	site.Status.ReadyReplicas = served.Status.ReadyReplicas
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "ReplicasMissing",
		ObservedGeneration: site.Generation,
	}
	if served.Status.ReadyReplicas >= site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "AllReplicasReady"
	}
	meta.SetStatusCondition(&site.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, site.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, site)
}
