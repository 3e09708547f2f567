//go:build !k1.8

package virtual

import (
	extensions "k8s.io/kubernetes/pkg/apis/extensions/v1beta1"
	scaleclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/extensions/v1beta1"
)

type (
	extensionsScale = extensions.Scale
	scaleInterface  = scaleclient.ScaleInterface
	scalesGetter    = scaleclient.ScalesGetter
)
