//go:build !k1.16

package virtual

// setOverhead does nothing: up to Kubernetes 1.15 a pod has no overhead.
func setOverhead(*PodSpec, ResourceList) {}
