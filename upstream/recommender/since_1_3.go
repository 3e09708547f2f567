//go:build vpa1.3

package recommender

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

// fetcher finds targets of VPAs, and the controllers above them.
type fetcher struct{ cluster *cluster }

func (f fetcher) Fetch(_ context.Context, vpa *vpa_types.VerticalPodAutoscaler) (labels.Selector, error) {
	return f.cluster.selector(vpa)
}

func (f fetcher) FindTopMostWellKnownOrScalable(_ context.Context, key *controllerKey) (*controllerKey, error) {
	return f.cluster.topmost(key)
}
