//go:build vpa1.2

package recommender

import (
	"strings"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
)

func init() {
	feederFields = append(feederFields, func(f *input.ClusterStateFeederFactory, cfg *settings, _ *cluster) {
		f.IgnoredNamespaces = strings.Split(cfg.ignoredNamespaces(), ",")
	})
}
