//go:build vpa1.7

package recommender

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/features"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

// settings are upstream's own.
type settings struct{ *config.RecommenderConfig }

func (s *settings) namespace() string { return s.CommonFlags.VpaObjectNamespace }

func (s *settings) ignoredNamespaces() string { return s.CommonFlags.IgnoredVpaObjectNamespaces }

// parseFlags lets upstream register and parse the recommender's flags, as its main function does.
// Upstream uses global sets of flags, so they are replaced for the call.
func parseFlags(flags map[string]string) (parsed *settings, err error) {
	args, goFlags, pFlags := os.Args, flag.CommandLine, pflag.CommandLine
	defer func() { os.Args, flag.CommandLine, pflag.CommandLine = args, goFlags, pFlags }()
	flag.CommandLine = flag.NewFlagSet("recommender", flag.ContinueOnError)
	flag.CommandLine.SetOutput(io.Discard)
	pflag.CommandLine = pflag.NewFlagSet("recommender", pflag.ContinueOnError)
	pflag.CommandLine.SetOutput(io.Discard)
	// Messages of higher verbosity are not recorded.
	os.Args = []string{"recommender", "--v=0"}
	// Gates are global: the default replaces the value of the last scenario. The recommender reads no
	// other gate.
	os.Args = append(os.Args, fmt.Sprintf("--feature-gates=%s=false", features.PerVPAConfig))
	for name, value := range flags {
		os.Args = append(os.Args, fmt.Sprintf("--%s=%s", name, value))
	}
	parsed = &settings{config.InitRecommenderFlags()}
	// Upstream ignores the error, because its own set of flags ends the process.
	return parsed, pflag.CommandLine.Parse(os.Args[1:])
}

func podResourceRecommender(cfg *settings) logic.PodResourceRecommender {
	return logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction:       cfg.SafetyMarginFraction,
		PodMinCPUMillicores:        cfg.PodMinCPUMillicores,
		PodMinMemoryMb:             cfg.PodMinMemoryMb,
		TargetCPUPercentile:        cfg.TargetCPUPercentile,
		LowerBoundCPUPercentile:    cfg.LowerBoundCPUPercentile,
		UpperBoundCPUPercentile:    cfg.UpperBoundCPUPercentile,
		ConfidenceIntervalCPU:      cfg.ConfidenceIntervalCPU,
		TargetMemoryPercentile:     cfg.TargetMemoryPercentile,
		LowerBoundMemoryPercentile: cfg.LowerBoundMemoryPercentile,
		UpperBoundMemoryPercentile: cfg.UpperBoundMemoryPercentile,
		ConfidenceIntervalMemory:   cfg.ConfidenceIntervalMemory,
	})
}

func init() {
	recommenderFields = append(recommenderFields, func(f *routines.RecommenderFactory, cfg *settings) {
		f.CheckpointsWriteTimeout = cfg.CheckpointsWriteTimeout
		f.RecommendationFormat = logic.RecommendationFormat{
			HumanizeMemory:     cfg.HumanizeMemory,
			RoundCPUMillicores: cfg.RoundCPUMillicores,
			RoundMemoryBytes:   cfg.RoundMemoryBytes,
		}
	})
}
