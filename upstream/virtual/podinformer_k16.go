//go:build !k1.12

package virtual

import "k8s.io/client-go/tools/cache"

// podInformer is none: up to Kubernetes 1.11 the controller asks the API server for pods.
type podInformer struct{}

func newPodInformer(clientset, cache.Indexers) podInformer { return podInformer{} }

func (podInformer) Run(<-chan struct{}) {}
