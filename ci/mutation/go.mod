module kube-lockstep.dev/mutation

go 1.26.0
