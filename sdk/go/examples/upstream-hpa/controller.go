package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
	"kube-lockstep.dev/sdk/lockstep"
)

// informerResync is the resync period of the kube-controller-manager's informers.
const informerResync = 12 * time.Hour

// start runs the controller until the context ends.
func start(ctx context.Context, run *lockstep.Run) error {
	client, err := kubernetes.NewForConfig(run.Config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	scales, err := scale.NewForConfig(run.Config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(discovery.DiscoveryInterface(client.Discovery()))
	metricsClient, err := newMetricsClient(run.Config, mapper, versions)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, informerResync)
	period := run.Duration("sync-period")
	controller := podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper, metricsClient,
		lateInformer{factory.Autoscaling().V2().HorizontalPodAutoscalers()}, factory.Core().V1().Pods(),
		period, run.Duration("downscale-stabilization"), run.Float("tolerance"),
		run.Duration("cpu-initialization-period"), run.Duration("initial-readiness-delay"),
	)
	run.Metrics = newOwnMetrics().changes
	var running sync.WaitGroup
	running.Go(func() { custom_metrics.PeriodicallyInvalidate(versions, period, ctx.Done()) })
	factory.Start(ctx.Done())
	controller.Run(ctx, int(run.Float("concurrent-horizontal-pod-autoscaler-syncs")))
	running.Wait()
	factory.Shutdown()
	return nil
}

func newMetricsClient(
	cfg *rest.Config, mapper *restmapper.DeferredDiscoveryRESTMapper,
	versions custom_metrics.AvailableAPIsGetter,
) (metrics.MetricsClient, error) {
	resources, err := resourceclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	custom := custom_metrics.NewForConfig(cfg, mapper, versions)
	return metrics.NewRESTMetricsClient(resources, custom, external), nil
}
