//go:build k1.28

package virtual

import corev1 "k8s.io/api/core/v1"

// setSidecar turns an init container into a sidecar.
func setSidecar(c *corev1.Container) {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
}
