package recommender

import (
	"context"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/checkpoint"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/metrics"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/oom"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

// gcInterval is the interval of the garbage collection of aggregates. It is not a flag.
// Upstream: recommender_controller.go, aggregateContainerStateGCInterval
const gcInterval = time.Hour

// session is one scenario: a cluster with a running recommender, in its own bubble.
type session struct {
	config  *config.RecommenderConfig
	cluster *cluster
	log     *recorder
	// epoch is the time of the first start.
	epoch time.Time
	// due is the time of the next run.
	due         time.Time
	recommender routines.Recommender
}

// openSession lets time pass until the start, and starts the recommender.
func openSession(q *openRequest) (*session, error) {
	log := listen()
	parsed, err := parseFlags(q.Flags)
	if err != nil {
		return nil, err
	}
	if parsed.MetricsFetcherInterval <= 0 {
		return nil, fmt.Errorf("recommender-interval must be positive")
	}
	s := &session{
		config: parsed, cluster: newCluster(q.History), log: log, epoch: time.Unix(q.Start, 0),
	}
	wait := time.Until(s.epoch)
	if wait < 0 {
		return nil, fmt.Errorf("the start is before the year 2000")
	}
	time.Sleep(wait)
	for i := range q.Apply {
		if err := s.cluster.apply(&q.Apply[i]); err != nil {
			return nil, err
		}
	}
	s.start()
	return s, nil
}

// start creates a recommender, as upstream's NewRecommenderController and Run do.
func (s *session) start() {
	cfg, c := s.config, s.cluster
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		cfg.MemoryAggregationInterval, cfg.MemoryAggregationIntervalCount,
		cfg.MemoryHistogramDecayHalfLife, cfg.CpuHistogramDecayHalfLife,
		cfg.OOMBumpUpRatio, cfg.OOMMinBumpUp,
	))
	c.observer = oom.NewObserver()
	state := model.NewClusterState(gcInterval)
	factory := input.ClusterStateFeederFactory{
		ClusterState:        state,
		MetricsClient:       metrics.NewMetricsClient(c, cfg.CommonFlags.VpaObjectNamespace, "default-metrics-client"),
		VpaCheckpointClient: c,
		VpaCheckpointLister: c.checkpointLister(),
		VpaLister:           c.vpaLister(),
		PodLister:           c.podLister(),
		OOMObserver:         c.observer,
		SelectorFetcher:     c,
		MemorySaveMode:      cfg.MemorySaver,
		ControllerFetcher:   c,
		RecommenderName:     cfg.RecommenderName,
		IgnoredNamespaces:   strings.Split(cfg.CommonFlags.IgnoredVpaObjectNamespaces, ","),
		VpaObjectNamespace:  cfg.CommonFlags.VpaObjectNamespace,
	}
	completeFeeder(&factory, c)
	s.recommender = routines.RecommenderFactory{
		ClusterState:                 state,
		ClusterStateFeeder:           factory.Make(),
		ControllerFetcher:            c,
		CheckpointWriter:             checkpoint.NewCheckpointWriter(state, c),
		PodResourceRecommender:       logic.CreatePodResourceRecommender(estimation(cfg)),
		RecommendationFormat:         format(cfg),
		VpaClient:                    c,
		RecommendationPostProcessors: postProcessors(cfg),
		CheckpointsGCInterval:        cfg.CheckpointsGCInterval,
		CheckpointsWriteTimeout:      cfg.CheckpointsWriteTimeout,
		UseCheckpoints:               cfg.Storage != "prometheus",
		UpdateWorkerCount:            cfg.UpdateWorkerCount,
	}.Make()
	feeder := s.recommender.GetClusterStateFeeder()
	if cfg.Storage != "prometheus" {
		feeder.InitFromCheckpoints(context.Background())
	} else {
		feeder.InitFromHistoryProvider(c)
	}
	s.due = time.Now().Add(cfg.MetricsFetcherInterval)
}

func estimation(cfg *config.RecommenderConfig) logic.RecommendationConfig {
	return logic.RecommendationConfig{
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
	}
}

func format(cfg *config.RecommenderConfig) logic.RecommendationFormat {
	return logic.RecommendationFormat{
		HumanizeMemory:     cfg.HumanizeMemory,
		RoundCPUMillicores: cfg.RoundCPUMillicores,
		RoundMemoryBytes:   cfg.RoundMemoryBytes,
	}
}

func postProcessors(cfg *config.RecommenderConfig) []routines.RecommendationPostProcessor {
	var processors []routines.RecommendationPostProcessor
	if cfg.PostProcessorCPUasInteger {
		processors = append(processors, &routines.IntegerCPUPostProcessor{})
	}
	maxAllowed := corev1.ResourceList{}
	if !cfg.MaxAllowedCPU.IsZero() {
		maxAllowed[corev1.ResourceCPU] = cfg.MaxAllowedCPU.Quantity
	}
	if !cfg.MaxAllowedMemory.IsZero() {
		maxAllowed[corev1.ResourceMemory] = cfg.MaxAllowedMemory.Quantity
	}
	return append(processors, routines.NewCappingRecommendationProcessor(maxAllowed))
}

// step applies changes at the present time, and lets time pass.
func (s *session) step(q *stepRequest) (*steppedAnswer, error) {
	for i := range q.Apply {
		if q.Apply[i].Restart != nil {
			s.start()
		} else if err := s.cluster.apply(&q.Apply[i]); err != nil {
			return nil, err
		}
	}
	answer := &steppedAnswer{Runs: []run{}, Log: s.log.take()}
	until := s.epoch.Add(time.Duration(q.Until))
	if time.Now().After(until) {
		return nil, fmt.Errorf("it is %v: too late for %v", time.Since(s.epoch), time.Duration(q.Until))
	}
	for !s.due.After(until) {
		time.Sleep(time.Until(s.due))
		answer.Runs = append(answer.Runs, s.run())
		s.due = s.due.Add(s.config.MetricsFetcherInterval)
	}
	time.Sleep(time.Until(until))
	answer.Now = int64(time.Since(s.epoch))
	return answer, nil
}

// run runs the recommender once, and returns its requests and messages.
func (s *session) run() run {
	s.recommender.RunOnce()
	synctest.Wait()
	writes := s.cluster.writes
	s.cluster.writes = nil
	if writes == nil {
		writes = []write{}
	}
	return run{At: int64(time.Since(s.epoch)), Writes: writes, Log: s.log.take()}
}
