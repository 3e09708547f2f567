//go:build !vpa0.13

package recommender

import "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"

func initializeAggregations(cfg *settings) {
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		cfg.MemoryAggregationInterval, cfg.MemoryAggregationIntervalCount,
		cfg.MemoryHistogramDecayHalfLife, cfg.CpuHistogramDecayHalfLife,
	))
}
