package recommender

import (
	"fmt"
	"testing/synctest"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/checkpoint"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/oom"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

// gcInterval is the interval of the garbage collection of aggregates. It is not a flag.
// Upstream: recommender_controller.go, aggregateContainerStateGCInterval
const gcInterval = time.Hour

// session is one scenario: a cluster with a running recommender, in its own bubble.
type session struct {
	settings *settings
	cluster  *cluster
	log      *recorder
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
		settings: parsed, cluster: newCluster(q.History), log: log, epoch: time.Unix(q.Start, 0),
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

// The fields that only some releases of the two factories have, and the session's values for them.
var (
	feederFields      []func(*input.ClusterStateFeederFactory, *settings, *cluster)
	recommenderFields []func(*routines.RecommenderFactory, *settings)
)

// start creates a recommender, as upstream's main function does.
func (s *session) start() {
	cfg, c := s.settings, s.cluster
	initializeAggregations(cfg)
	c.observer = oom.NewObserver()
	state := model.NewClusterState(gcInterval)
	feeder := input.ClusterStateFeederFactory{
		ClusterState:        state,
		MetricsClient:       metricsClient(c, cfg.namespace()),
		VpaCheckpointClient: c,
		VpaLister:           c.vpaLister(cfg.namespace()),
		PodLister:           c.podLister(),
		OOMObserver:         c.observer,
		SelectorFetcher:     fetcher{c},
		MemorySaveMode:      cfg.MemorySaver,
		ControllerFetcher:   fetcher{c},
	}
	for _, set := range feederFields {
		set(&feeder, cfg, c)
	}
	recommender := routines.RecommenderFactory{
		ClusterState:           state,
		ClusterStateFeeder:     feeder.Make(),
		ControllerFetcher:      fetcher{c},
		CheckpointWriter:       checkpoint.NewCheckpointWriter(state, c),
		PodResourceRecommender: podResourceRecommender(cfg),
		VpaClient:              c,
		CheckpointsGCInterval:  cfg.CheckpointsGCInterval,
		UseCheckpoints:         cfg.Storage != "prometheus",
	}
	for _, set := range recommenderFields {
		set(&recommender, cfg)
	}
	s.recommender = recommender.Make()
	if cfg.Storage != "prometheus" {
		initFromCheckpoints(s.recommender.GetClusterStateFeeder())
	} else {
		s.recommender.GetClusterStateFeeder().InitFromHistoryProvider(c)
	}
	s.due = time.Now().Add(cfg.MetricsFetcherInterval)
}

// step applies changes at the current time, and lets time pass.
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
		s.due = s.due.Add(s.settings.MetricsFetcherInterval)
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
