// Upstream-hpa is upstream's HPA controller with its real REST clients, wired as in the
// kube-controller-manager, and the engine that runs it in virtual time. The scenarios compare it
// with the model, and so check the SDK.
package main

import "kube-lockstep.dev/sdk/lockstep"

func main() { lockstep.Serve(engine) }

var engine = lockstep.Engine{Name: "upstream-hpa", Prepare: prepare, Start: start}
