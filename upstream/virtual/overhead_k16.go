//go:build !k1.16

package virtual

import corev1 "k8s.io/api/core/v1"

// setOverhead does nothing: up to Kubernetes 1.15 a pod has no overhead.
func setOverhead(*corev1.PodSpec, corev1.ResourceList) {}
