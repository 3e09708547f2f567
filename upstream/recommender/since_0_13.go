//go:build vpa0.13

package recommender

import (
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

func initializeAggregations(cfg *settings) {
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		cfg.MemoryAggregationInterval, cfg.MemoryAggregationIntervalCount,
		cfg.MemoryHistogramDecayHalfLife, cfg.CpuHistogramDecayHalfLife,
		cfg.OOMBumpUpRatio, cfg.OOMMinBumpUp,
	))
}

func init() {
	feederFields = append(feederFields, func(f *input.ClusterStateFeederFactory, cfg *settings, _ *cluster) {
		f.RecommenderName = cfg.RecommenderName
	})
	recommenderFields = append(recommenderFields, func(f *routines.RecommenderFactory, cfg *settings) {
		if cfg.PostProcessorCPUasInteger {
			f.RecommendationPostProcessors = append(f.RecommendationPostProcessors, &routines.IntegerCPUPostProcessor{})
		}
		f.RecommendationPostProcessors = append(f.RecommendationPostProcessors, capping(cfg))
	})
}
