//go:build !k1.28

package virtual

// setSidecar does nothing: up to Kubernetes 1.27 init containers end before the others start, and
// the API server drops unknown fields.
func setSidecar(*Container) {}
