//go:build !vpa1.7

package recommender

import (
	"flag"
	"io"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// settings are the flags of upstream's main function, which is not importable: they are registered
// here again, under the same names. Upstream's packages register the other flags.
type settings struct {
	RecommenderName                string
	MetricsFetcherInterval         time.Duration
	CheckpointsGCInterval          time.Duration
	Storage                        string
	MemorySaver                    bool
	UpdateWorkerCount              int
	MemoryAggregationInterval      time.Duration
	MemoryAggregationIntervalCount int64
	MemoryHistogramDecayHalfLife   time.Duration
	CpuHistogramDecayHalfLife      time.Duration
	OOMBumpUpRatio                 float64
	OOMMinBumpUp                   float64
	PostProcessorCPUasInteger      bool
	globalMaximum

	vpaObjectNamespace string
	ignored            string
}

func (s *settings) namespace() string { return s.vpaObjectNamespace }

func (s *settings) ignoredNamespaces() string { return s.ignored }

// mainFlags register the flags of upstream's main functions; newer releases add some.
var mainFlags []func(*flag.FlagSet, *settings)

func init() {
	mainFlags = append(mainFlags, func(set *flag.FlagSet, s *settings) {
		set.DurationVar(&s.MetricsFetcherInterval, "recommender-interval", time.Minute, "")
		set.DurationVar(&s.CheckpointsGCInterval, "checkpoints-gc-interval", 10*time.Minute, "")
		set.StringVar(&s.Storage, "storage", "", "")
		set.StringVar(&s.vpaObjectNamespace, "vpa-object-namespace", "", "")
		set.DurationVar(&s.MemoryAggregationInterval, "memory-aggregation-interval", model.DefaultMemoryAggregationInterval, "")
		set.Int64Var(&s.MemoryAggregationIntervalCount, "memory-aggregation-interval-count", model.DefaultMemoryAggregationIntervalCount, "")
		set.DurationVar(&s.MemoryHistogramDecayHalfLife, "memory-histogram-decay-half-life", model.DefaultMemoryHistogramDecayHalfLife, "")
		set.DurationVar(&s.CpuHistogramDecayHalfLife, "cpu-histogram-decay-half-life", model.DefaultCPUHistogramDecayHalfLife, "")
		set.BoolVar(&s.MemorySaver, "memory-saver", false, "")
	})
}

// parseFlags parses the flags of upstream's main function, and lets upstream parse the others. Those
// are global, so the values of the last scenario are replaced by the defaults.
func parseFlags(flags map[string]string) (*settings, error) {
	parsed := &settings{}
	own := flag.NewFlagSet("recommender", flag.ContinueOnError)
	own.SetOutput(io.Discard)
	for _, register := range mainFlags {
		register(own, parsed)
	}
	for _, name := range libraryFlags {
		if known := flag.CommandLine.Lookup(name); known != nil {
			if err := known.Value.Set(known.DefValue); err != nil {
				return nil, err
			}
		}
	}
	if err := setFeatureGates(""); err != nil {
		return nil, err
	}
	var args []string
	for name, value := range flags {
		switch {
		case name == "feature-gates":
			if err := setFeatureGates(value); err != nil {
				return nil, err
			}
		case isLibraryFlag(name) && flag.CommandLine.Lookup(name) != nil:
			if err := flag.CommandLine.Set(name, value); err != nil {
				return nil, err
			}
		default:
			args = append(args, "--"+name+"="+value)
		}
	}
	return parsed, own.Parse(args)
}

// libraryFlags are the flags that upstream's packages register when they are loaded. Releases have
// only some of them.
var libraryFlags = []string{
	"recommendation-margin-fraction",
	"pod-recommendation-min-cpu-millicores",
	"pod-recommendation-min-memory-mb",
	"target-cpu-percentile",
	"recommendation-lower-bound-cpu-percentile",
	"recommendation-upper-bound-cpu-percentile",
	"confidence-interval-cpu",
	"target-memory-percentile",
	"recommendation-lower-bound-memory-percentile",
	"recommendation-upper-bound-memory-percentile",
	"confidence-interval-memory",
	"humanize-memory",
	"round-cpu-millicores",
	"round-memory-bytes",
}

func isLibraryFlag(name string) bool {
	for _, known := range libraryFlags {
		if known == name {
			return true
		}
	}
	return false
}

func podResourceRecommender(*settings) logic.PodResourceRecommender {
	return logic.CreatePodResourceRecommender()
}
