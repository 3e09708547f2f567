//go:build !k1.8

package virtual

import (
	eventclient "k8s.io/client-go/kubernetes/typed/core/v1"
	generated "k8s.io/kubernetes/pkg/client/clientset_generated/clientset"
	coreclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/core/v1"
)

type (
	clientInterface  = generated.Interface
	coreInterface    = coreclient.CoreV1Interface
	podInterface     = coreclient.PodInterface
	eventInterface   = eventclient.EventInterface
	serviceInterface = coreclient.ServiceInterface
)

// eventsGetter is where the controller writes its events: to a client of another module.
type eventsGetter struct{ stopped <-chan struct{} }

func (e eventsGetter) Events(string) eventInterface { return events{stopped: e.stopped} }
