//go:build !k1.32

package virtual

// setPodRequests does nothing: up to Kubernetes 1.31 a pod has no requests as a whole, and the API
// server drops what it does not know.
func setPodRequests(*PodSpec, ResourceList) {}
