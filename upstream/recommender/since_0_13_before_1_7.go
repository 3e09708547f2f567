//go:build vpa0.13 && !vpa1.7

package recommender

import (
	"flag"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

func init() {
	mainFlags = append(mainFlags, func(set *flag.FlagSet, s *settings) {
		set.StringVar(&s.RecommenderName, "recommender-name", input.DefaultRecommenderName, "")
		set.Float64Var(&s.OOMBumpUpRatio, "oom-bump-up-ratio", model.DefaultOOMBumpUpRatio, "")
		set.Float64Var(&s.OOMMinBumpUp, "oom-min-bump-up-bytes", model.DefaultOOMMinBumpUp, "")
		set.BoolVar(&s.PostProcessorCPUasInteger, "cpu-integer-post-processor-enabled", false, "")
	})
}
