//go:build vpa1.4

package recommender

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

func init() {
	feederFields = append(feederFields, func(f *input.ClusterStateFeederFactory, cfg *settings, _ *cluster) {
		f.VpaObjectNamespace = cfg.namespace()
	})
}

// capping limits recommendations to those that policies and flags allow.
func capping(cfg *settings) routines.RecommendationPostProcessor {
	maxAllowed := corev1.ResourceList{}
	if !cfg.MaxAllowedCPU.IsZero() {
		maxAllowed[corev1.ResourceCPU] = cfg.MaxAllowedCPU.Quantity
	}
	if !cfg.MaxAllowedMemory.IsZero() {
		maxAllowed[corev1.ResourceMemory] = cfg.MaxAllowedMemory.Quantity
	}
	return routines.NewCappingRecommendationProcessor(maxAllowed)
}

func initFromCheckpoints(feeder input.ClusterStateFeeder) {
	feeder.InitFromCheckpoints(context.Background())
}
