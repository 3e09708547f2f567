//! kube-lockstep
