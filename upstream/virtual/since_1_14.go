//go:build k1.14

package virtual

import utilfeature "k8s.io/apiserver/pkg/util/feature"

// mutableGates are upstream's feature gates.
var mutableGates = utilfeature.DefaultMutableFeatureGate
