//go:build !k1.32

package virtual

// setPodRequests does nothing: up to Kubernetes 1.31 there are no pod-level requests, and the API
// server drops unknown fields.
func setPodRequests(*PodSpec, ResourceList) {}
