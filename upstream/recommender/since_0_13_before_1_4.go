//go:build vpa0.13 && !vpa1.4

package recommender

import "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"

// capping limits recommendations to those that policies allow.
func capping(*settings) routines.RecommendationPostProcessor {
	return &routines.CappingPostProcessor{}
}
