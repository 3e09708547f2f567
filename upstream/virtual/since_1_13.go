//go:build k1.13

package virtual

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
)

// outdatedScale is the API server's error for a write of a scale that was read before the object
// changed. It is the error of the storage.
func outdatedScale(resource schema.GroupResource, name string) error {
	return apierrors.NewConflict(resource, name, errOutdated)
}

func (queueMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return unobserved{}
}
