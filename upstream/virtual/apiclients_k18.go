//go:build k1.8

package virtual

import (
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

type (
	clientInterface  = kubernetes.Interface
	coreInterface    = coreclient.CoreV1Interface
	podInterface     = coreclient.PodInterface
	serviceInterface = coreclient.ServiceInterface
	eventInterface   = coreclient.EventInterface
)

func (c coreV1) Events(string) eventInterface { return events{stopped: c.stopped} }
