//go:build !k1.37

package virtual

// sortSelectors does nothing: up to Kubernetes 1.36 the controller collects HPAs with the same pods
// in a local map, and names them in random order.
func sortSelectors(any) {}
