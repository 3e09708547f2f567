//go:build !vpa1.6

package recommender

import "fmt"

// setFeatureGates rejects all gates: the recommender reads none.
func setFeatureGates(value string) error {
	if value != "" {
		return fmt.Errorf("the recommender reads no feature gate: %s", value)
	}
	return nil
}
