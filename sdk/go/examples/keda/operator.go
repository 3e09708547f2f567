package main

import (
	"context"
	"time"

	eventingv1alpha1 "github.com/kedacore/keda/v2/apis/eventing/v1alpha1"
	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	eventingcontrollers "github.com/kedacore/keda/v2/controllers/eventing"
	kedacontrollers "github.com/kedacore/keda/v2/controllers/keda"
	"github.com/kedacore/keda/v2/pkg/eventemitter"
	"github.com/kedacore/keda/v2/pkg/k8s"
	"github.com/kedacore/keda/v2/pkg/scalers/authentication"
	"github.com/kedacore/keda/v2/pkg/scaling"
	kedautil "github.com/kedacore/keda/v2/pkg/util"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The values that KEDA's main function uses without flags and environment variables.
const (
	operatorNamespace         = "keda"
	clusterName               = "kubernetes-default"
	httpTimeout               = 3 * time.Second
	kubernetesAPITimeout      = time.Duration(0)
	resyncOfSecrets           = time.Hour
	reconcilesOfScaledObjects = 5
	reconcilesOfScaledJobs    = 1
)

// noSocket is an address on which no server listens.
const noSocket = "0"

// operate runs the operator until the context ends. It lacks what requires a socket: the servers
// for probes and webhooks, the gRPC server that KEDA's adapter of the metrics API calls, and, if
// the address is noSocket, the server of the operator's own metrics.
func operate(ctx context.Context, cfg *rest.Config, metricsAddress string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kedav1alpha1.AddToScheme, eventingv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: metricsAddress},
		Cache:   ctrlcache.Options{DefaultTransform: kedautil.CacheObjectTransform},
		// Controllers have unique names in a process, which runs many scenarios.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	secrets := informers.NewSharedInformerFactoryWithOptions(
		client, resyncOfSecrets, informers.WithNamespace(operatorNamespace))
	auth := &authentication.AuthClientSet{
		CoreV1Interface: client.CoreV1(), SecretLister: secrets.Core().V1().Secrets().Lister(),
	}
	if err := addControllers(mgr, auth); err != nil {
		return err
	}
	secrets.Start(ctx.Done())
	defer secrets.Shutdown()
	secrets.WaitForCacheSync(ctx.Done())
	return mgr.Start(ctx)
}

// addControllers adds all controllers of KEDA to the manager.
func addControllers(mgr ctrl.Manager, auth *authentication.AuthClientSet) error {
	scales, _, err := k8s.InitScaleClient(mgr)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("keda-operator")
	scaler := scaling.NewScaleHandler(mgr.GetClient(), scales, mgr.GetScheme(), httpTimeout,
		kubernetesAPITimeout, recorder, auth)
	emitter := eventemitter.NewEventEmitter(mgr.GetClient(), recorder, clusterName, auth)
	err = (&kedacontrollers.ScaledObjectReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), ScaleClient: scales, ScaleHandler: scaler,
		EventEmitter: emitter,
	}).SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: reconcilesOfScaledObjects})
	if err != nil {
		return err
	}
	err = (&kedacontrollers.ScaledJobReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), GlobalHTTPTimeout: httpTimeout,
		KubernetesAPITimeout: kubernetesAPITimeout, EventEmitter: emitter, AuthClientSet: auth,
	}).SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: reconcilesOfScaledJobs})
	if err != nil {
		return err
	}
	for _, other := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&kedacontrollers.TriggerAuthenticationReconciler{Client: mgr.GetClient(), EventHandler: emitter},
		&kedacontrollers.ClusterTriggerAuthenticationReconciler{
			Client: mgr.GetClient(), EventHandler: emitter,
		},
		eventingcontrollers.NewCloudEventSourceReconciler(mgr.GetClient(), emitter),
		eventingcontrollers.NewClusterCloudEventSourceReconciler(mgr.GetClient(), emitter),
	} {
		if err := other.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}
