//go:build vpa1.5

package recommender

import (
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

func init() {
	feederFields = append(feederFields, func(f *input.ClusterStateFeederFactory, _ *settings, c *cluster) {
		f.VpaCheckpointLister = c.checkpointLister()
	})
	recommenderFields = append(recommenderFields, func(f *routines.RecommenderFactory, cfg *settings) {
		f.UpdateWorkerCount = cfg.UpdateWorkerCount
	})
}
