// Website is a controller of a custom resource as one writes it with controller-runtime, and the engine
// that runs it in virtual time: this file is all that knows of kube-lockstep.
package main

import (
	"context"

	"kube-lockstep.dev/sdk/lockstep"
	"kube-lockstep.dev/website/site"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() { lockstep.Serve(engine) }

var engine = lockstep.Engine{
	Name: "website",
	Start: func(ctx context.Context, run *lockstep.Run) error {
		ctrl.SetLogger(lockstep.Logger())
		return site.Run(ctx, run.Config)
	},
}
