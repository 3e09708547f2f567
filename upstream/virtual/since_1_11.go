//go:build k1.11

package virtual

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newDefaultMapper(versions []schema.GroupVersion) *meta.DefaultRESTMapper {
	return meta.NewDefaultRESTMapper(versions)
}

// setFeatureGates sets upstream's global gates; the returned function restores them.
func setFeatureGates(gates map[string]bool) (back func(), err error) {
	if len(gates) == 0 {
		return func() {}, nil
	}
	if err := tryGates(gates); err != nil {
		return nil, err
	}
	before, changes := map[string]bool{}, map[string]bool{}
	for gate, on := range gates {
		// Upstream logs a warning for each gate that is set, even if the value does not change.
		if was := gateIsOn(gate); was != on {
			before[gate], changes[gate] = was, on
		}
	}
	if len(changes) == 0 {
		return func() {}, nil
	}
	if err := mutableGates.SetFromMap(changes); err != nil {
		return nil, err
	}
	return func() {
		if err := mutableGates.SetFromMap(before); err != nil {
			panic(err)
		}
	}, nil
}

// tryGates returns upstream's error for a change of its feature gates. A gate set keeps the error
// of a failed attempt forever, so the attempt is made on a copy.
func tryGates(gates map[string]bool) error { return mutableGates.DeepCopy().SetFromMap(gates) }
