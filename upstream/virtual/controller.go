package virtual

import (
	"context"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// factoryResync is the resync period of the kube-controller-manager's informers. With 0, reflectors
// of Kubernetes 1.33 and older wait on a channel from outside of the bubble, and time would stop.
const factoryResync = 12 * time.Hour

// shortestResync is the shortest period that client-go allows.
const shortestResync = time.Second

type hpaInformer struct{ cache.SharedIndexInformer }

func (i hpaInformer) Informer() cache.SharedIndexInformer { return i }

// lateResync is a nanosecond longer than the requested period. Otherwise a reconcile that a resync
// has queued would be due exactly at the next resync, and their order would be random. Real timers
// are also late: each timer is set when the previous timer has fired.
func lateResync(period time.Duration) time.Duration {
	return max(period, shortestResync) + time.Nanosecond
}

// startController starts a controller with its own informers. The returned function stops them and
// waits until they end. Reconciles are serialized if turns is not nil.
func startController(
	ctx context.Context, c *cluster, f flags, mapper meta.RESTMapper, t *turns,
) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	client := clientset{cluster: c, stopped: stopped}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	hpas := newHPAInformer(client, byNamespace)
	pods := newPodInformer(client, byNamespace)
	queueSeries.start(c.observed.allMetrics, t != nil)
	controller := newController(ctx, client, scales{c}, mapper, newMetricsClient(c), hpas, pods, f)
	calm(controller)
	stopEvents := recordEvents(controller, c.observed)
	if t != nil {
		t.takeOver(controller)
	} else if c.observed.allMetrics && readQueue != nil {
		queueSeries.observe(controller)
	}
	ownSeries.start()
	c.observed.paused = map[string][]entry{}
	var running sync.WaitGroup
	// As in the kube-controller-manager, the informers start last. When the controller first checks
	// its caches, they are therefore never synced, and its workers start at the next check.
	running.Go(func() { run(ctx, controller, f.workers) })
	synctest.Wait()
	running.Go(func() { hpas.Run(ctx.Done()) })
	running.Go(func() { pods.Run(ctx.Done()) })
	return func() {
		cancel()
		if t != nil {
			t.end()
		}
		running.Wait()
		stopEvents()
		close(stopped)
	}
}
