// The module's own file has no requirements: each Kubernetes release has its own, in versions/.
module kube-lockstep.dev/upstream

go 1.26
