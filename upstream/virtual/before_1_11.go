//go:build !k1.11

package virtual

import "errors"

// setFeatureGates rejects all gates: none concerns the controller.
func setFeatureGates(gates map[string]bool) (back func(), err error) {
	if len(gates) > 0 {
		return nil, errors.New("up to Kubernetes 1.10 no feature gate concerns the controller")
	}
	return func() {}, nil
}
