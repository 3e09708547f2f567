//go:build k1.15

package virtual

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// gateIsOn reports whether an existing feature gate is on.
func gateIsOn(gate string) bool {
	return utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(gate))
}
