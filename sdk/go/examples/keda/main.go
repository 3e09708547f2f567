// Keda is the operator of KEDA, wired as in its own main function, and the engine that runs it in
// virtual time: github.com/kedacore/keda/v2 v2.21.0 (Apache License 2.0), as a module dependency.
// Its CustomResourceDefinitions come from the module.
package main

import (
	"context"
	"sync"

	"github.com/kedacore/keda/v2/pkg/metricscollector"
	"kube-lockstep.dev/sdk/lockstep"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() { lockstep.Serve(engine) }

var engine = engineWith(noSocket)

// engineWith is the engine with an address of the operator's metrics.
func engineWith(metricsAddress string) lockstep.Engine {
	start := func(ctx context.Context, run *lockstep.Run) error {
		oncePerProcess()
		return operate(ctx, run.Config, metricsAddress)
	}
	return lockstep.Engine{Name: "keda", Prepare: prepare, Start: start}
}

// oncePerProcess does what KEDA's main function does to the state of the process.
var oncePerProcess = sync.OnceFunc(func() {
	ctrl.SetLogger(lockstep.Logger())
	metricscollector.NewMetricsCollectors(metricscollector.Options{EnablePrometheusMetrics: true})
})
