// Package lockstep runs a controller, unmodified, in virtual time, as an engine of kube-lockstep.
//
// The controller calls an API server in memory through the *rest.Config that it is started with. It
// runs in a testing/synctest bubble, where time passes only while all goroutines wait. kube-lockstep
// changes the cluster and lets time pass, and compares or checks what the controller does:
//
//	func main() {
//		lockstep.Serve(lockstep.Engine{
//			Name: "my-controller",
//			Start: func(ctx context.Context, run *lockstep.Run) error {
//				return mine.Run(ctx, run.Config) // ctrl.NewManager(cfg, …) … mgr.Start(ctx)
//			},
//		})
//	}
//
//	go build -o my-engine . && kube-lockstep run --program ./my-engine
//
// docs/sdk.md describes what the API server serves, which code can't run in virtual time, and how
// scenarios run in go test.
package lockstep

// Protocol is the version of the engine protocol that this package speaks. It is a minor version of
// this module: v0.3.x speaks version 3.
const Protocol = 3
