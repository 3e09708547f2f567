//go:build k1.30

package virtual

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// listen returns the context of a controller whose events are recorded.
func listen(o *observed) context.Context {
	return klog.NewContext(context.Background(), logr.New(eventLogger{o}))
}

// recordEvents does nothing: the controller takes its logger from its context.
func recordEvents(any, *observed) (stop func()) { return func() {} }

// eventLogger receives the controller's structured log. The broadcaster logs each event as it was
// recorded, before client-go's correlator merges, aggregates and limits events.
type eventLogger struct{ observed *observed }

func (eventLogger) Init(logr.RuntimeInfo) {}

// Enabled is true only for the level at which the controller's events are logged.
func (eventLogger) Enabled(level int) bool { return level == 3 }

func (l eventLogger) Info(_ int, msg string, keysAndValues ...any) {
	if msg != "Event occurred" {
		return
	}
	e := entry{kind: event}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		switch keysAndValues[i] {
		case "object":
			if ref, ok := keysAndValues[i+1].(klog.ObjectRef); ok {
				e.name = ref.Name
			}
		case "type":
			e.eventType, _ = keysAndValues[i+1].(string)
		case "reason":
			e.reason, _ = keysAndValues[i+1].(string)
		case "message":
			e.message, _ = keysAndValues[i+1].(string)
		}
	}
	l.observed.record(e)
}

func (eventLogger) Error(err error, msg string, keysAndValues ...any) {
	fmt.Fprintln(os.Stderr, msg, err, keysAndValues)
}

func (l eventLogger) WithValues(...any) logr.LogSink { return l }
func (l eventLogger) WithName(string) logr.LogSink   { return l }

// quiet does nothing: the controller logs to the logger in its context.
func quiet() {}

func newController(
	ctx context.Context, client clientset, scales scale.ScalesGetter, mapper meta.RESTMapper,
	metrics metrics.MetricsClient, hpas hpaInformer, pods podInformer, f flags,
) *podautoscaler.HorizontalController {
	return podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), scales, client.autoscaling(), mapper, metrics,
		hpas, pods, f.syncPeriod, f.downscaleStabilization, f.tolerance,
		f.cpuInitializationPeriod, f.initialReadinessDelay,
	)
}
