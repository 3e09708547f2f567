package virtual

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// factoryResync is the resync of the kube-controller-manager's informers. With 0, reflectors of
// Kubernetes 1.33 and older wait on a channel from outside of the bubble: time would stand still.
const factoryResync = 12 * time.Hour

// shortestResync is the shortest that client-go grants.
const shortestResync = time.Second

type hpaInformer struct{ cache.SharedIndexInformer }

func (i hpaInformer) Informer() cache.SharedIndexInformer { return i }

// lateResync is a nanosecond longer than was asked for. A turn that a resync has queued would
// otherwise come at the very instant of the next resync, and chance would decide which is first.
// Real timers are late, too: the next one is set when one has fired.
func lateResync(period time.Duration) time.Duration {
	return max(period, shortestResync) + time.Nanosecond
}

type podInformer struct{ cache.SharedIndexInformer }

func (i podInformer) Informer() cache.SharedIndexInformer { return i }

func (i podInformer) Lister() corelisters.PodLister {
	return podLister{corelisters.NewPodLister(i.GetIndexer())}
}

// podLister lists pods by name. Upstream's cache lists them in the random order of a map, and the
// controller names the first one that has no request: by name is one of the orders that can be.
type podLister struct{ corelisters.PodLister }

type podNamespaceLister struct{ corelisters.PodNamespaceLister }

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{l.PodLister.Pods(namespace)}
}

func (l podNamespaceLister) List(selector labels.Selector) ([]*v1.Pod, error) {
	pods, err := l.PodNamespaceLister.List(selector)
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, err
}

// retryDuration is the wait between attempts to update the scale.
var retryDuration = retry.DefaultRetry.Duration

// The waits between attempts to update the scale are drawn with a jitter of a tenth. A length that
// can be drawn is taken instead, so that times can be predicted.
func init() { retry.DefaultRetry.Jitter = 0 }

// retryWait says who waits between attempts: upstream, or, so that others can have their turns
// meanwhile, the client that is asked to update the scale again.
func retryWait(byTurns bool) {
	retry.DefaultRetry.Duration = retryDuration
	if byTurns {
		retry.DefaultRetry.Duration = 0
	}
}

// startController starts a controller with informers of its own. The function returned stops them
// and waits for their end. Turns are taken if there are any to be taken.
func startController(
	ctx context.Context, c *cluster, f flags, mapper meta.RESTMapper, t *turns,
) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	client := clientset{cluster: c, stopped: stopped}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	hpas := newHPAInformer(client, byNamespace)
	pods := podInformer{coreinformers.NewPodInformer(client, "", factoryResync, byNamespace)}
	controller := newController(ctx, client, scales{c}, mapper, newMetricsClient(c), hpas, pods, f)
	hearEvents(controller, c.observed)
	if t != nil {
		t.takeOver(controller)
	}
	var running sync.WaitGroup
	running.Go(func() { hpas.Run(ctx.Done()) })
	running.Go(func() { pods.Run(ctx.Done()) })
	running.Go(func() { run(ctx, controller, f.workers) })
	return func() {
		cancel()
		if t != nil {
			t.end()
		}
		running.Wait()
		close(stopped)
	}
}
