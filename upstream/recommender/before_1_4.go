//go:build !vpa1.4

package recommender

import "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"

func initFromCheckpoints(feeder input.ClusterStateFeeder) { feeder.InitFromCheckpoints() }

// globalMaximum is empty: no flag limits recommendations.
type globalMaximum struct{}
