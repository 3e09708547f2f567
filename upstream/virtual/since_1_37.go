//go:build k1.37

package virtual

import (
	"cmp"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
)

// sortSelectors removes the randomness from the order in which the controller names HPAs with the
// same pods.
func sortSelectors(controller any) {
	tracker := privateField(controller, "selectorTracker")
	tracker.Set(reflect.ValueOf(sortedTracker{tracker.Interface().(selectorTracker)}))
}

// selectorTracker is upstream's hpaSelectorTracker.
type selectorTracker interface {
	PutIfAbsent(namespace string, key selectors.Key, selector labels.Selector) bool
	PutIfPresent(namespace string, key selectors.Key, selector labels.Selector) bool
	Delete(namespace string, key selectors.Key)
	HPAsMatchingPods(namespace string, pods []*v1.Pod, limit int) []selectors.Key
}

// sortedTracker names HPAs in order. Upstream's trackers name them in the random order of a map,
// and an arbitrary subset if there are more than requested. The first names in order are one of the
// possible results.
type sortedTracker struct{ selectorTracker }

func (s sortedTracker) HPAsMatchingPods(
	namespace string, pods []*v1.Pod, limit int,
) []selectors.Key {
	asked := s.selectorTracker.HPAsMatchingPods(namespace, pods, limit)
	all := s.selectorTracker.HPAsMatchingPods(namespace, pods, 0)
	slices.SortFunc(all, func(a, b selectors.Key) int { return cmp.Compare(a.Name, b.Name) })
	// Some trackers ignore the limit. The result has as many names as upstream's.
	return all[:len(asked)]
}
