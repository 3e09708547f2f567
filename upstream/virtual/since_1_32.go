//go:build k1.32

package virtual

import corev1 "k8s.io/api/core/v1"

// setPodRequests sets the pod-level requests.
func setPodRequests(spec *corev1.PodSpec, requests corev1.ResourceList) {
	spec.Resources = &corev1.ResourceRequirements{Requests: requests}
}
