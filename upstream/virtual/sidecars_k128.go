//go:build k1.28

package virtual

import corev1 "k8s.io/api/core/v1"

// setSidecar makes an init container one that runs beside the others.
func setSidecar(c *corev1.Container) {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
}
