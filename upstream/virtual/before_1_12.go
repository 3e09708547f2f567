//go:build !k1.12

package virtual

import "k8s.io/client-go/tools/cache"

// podInformer is empty: up to Kubernetes 1.11 the controller lists pods by API requests.
type podInformer struct{}

func newPodInformer(clientset, cache.Indexers) podInformer { return podInformer{} }

func (podInformer) Run(<-chan struct{}) {}
