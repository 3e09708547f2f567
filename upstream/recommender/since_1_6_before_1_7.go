//go:build vpa1.6 && !vpa1.7

package recommender

import (
	"fmt"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/features"
)

// setFeatureGates sets the gates of a scenario. They are global, so the default replaces the value
// of the last scenario. The recommender reads no other gate.
func setFeatureGates(value string) error {
	if err := features.MutableFeatureGate.Set(fmt.Sprintf("%s=false", features.PerVPAConfig)); err != nil {
		return err
	}
	return features.MutableFeatureGate.Set(value)
}
