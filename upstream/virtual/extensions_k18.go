//go:build k1.8 && !k1.9

package virtual

import (
	extensions "k8s.io/api/extensions/v1beta1"
	scaleclient "k8s.io/client-go/kubernetes/typed/extensions/v1beta1"
)

type (
	extensionsScale = extensions.Scale
	scaleInterface  = scaleclient.ScaleInterface
	scalesGetter    = scaleclient.ScalesGetter
)
