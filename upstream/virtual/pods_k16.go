//go:build !k1.32

package virtual

import corev1 "k8s.io/api/core/v1"

// setPodRequests does nothing: up to Kubernetes 1.31 a pod has no requests as a whole, and the API
// server drops what it does not know.
func setPodRequests(*corev1.PodSpec, corev1.ResourceList) {}
