//go:build k1.11

package virtual

// setFeatureGates sets upstream's global gates; the function returned sets them back.
func setFeatureGates(gates map[string]bool) (back func(), err error) {
	if len(gates) == 0 {
		return func() {}, nil
	}
	if err := tryGates(gates); err != nil {
		return nil, err
	}
	before, changes := map[string]bool{}, map[string]bool{}
	for gate, on := range gates {
		// Upstream warns of each gate that is set, be it to what it is already.
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

// tryGates is what upstream says of a change of its feature gates. A gate set remembers an attempt
// that fails, and fails for ever after: so it is made on a copy.
func tryGates(gates map[string]bool) error { return mutableGates.DeepCopy().SetFromMap(gates) }
