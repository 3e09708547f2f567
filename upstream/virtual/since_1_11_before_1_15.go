//go:build k1.11 && !k1.15

package virtual

import utilfeature "k8s.io/apiserver/pkg/util/feature"

// gateIsOn reports whether an existing feature gate is on.
func gateIsOn(gate string) bool {
	return utilfeature.DefaultFeatureGate.Enabled(utilfeature.Feature(gate))
}
