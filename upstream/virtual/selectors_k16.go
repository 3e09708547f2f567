//go:build !k1.37

package virtual

// sortSelectors does nothing: up to Kubernetes 1.36 the controller collects HPAs with the same pods
// in a map of its own, and names them in a random order.
func sortSelectors(any) {}
