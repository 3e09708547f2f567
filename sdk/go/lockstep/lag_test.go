package lockstep

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/apiserver"
)

// Changes reach caches 2 ns after the delay, never before earlier changes, and those of HPAs one after
// another.
func TestCachesAreLate(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	w := &world{
		due:  map[*apiserver.Request]time.Time{},
		lags: []lag{{at(0), 0}, {at(10 * time.Second), 5 * time.Second}, {at(12 * time.Second), 0}},
	}
	watch := func(resource schema.GroupResource) *apiserver.Request {
		return &apiserver.Request{Resource: &apiserver.Resource{
			Plural: resource.Resource,
			Versions: []*apiserver.Version{
				{GroupVersion: schema.GroupVersion{Group: resource.Group, Version: "v1"}},
			},
		}}
	}
	hpas, pods := watch(hpaResource), watch(podResource)
	secrets := watch(schema.GroupResource{Resource: "secrets"})
	for _, test := range []struct {
		watch     *apiserver.Request
		at, delay time.Duration
	}{
		{hpas, 9 * time.Second, 0},
		{hpas, 11 * time.Second, 5*time.Second + 2},
		{hpas, 13 * time.Second, 3*time.Second + 3},
		{hpas, 17 * time.Second, 0},
		{pods, 11 * time.Second, 5*time.Second + 2},
		{pods, 13 * time.Second, 3*time.Second + 2},
		{secrets, 11 * time.Second, 0},
	} {
		got := w.delay(apiserver.WatchEvent{Watch: test.watch, At: at(test.at)})
		if got != test.delay {
			t.Errorf("%s at %s: %s, not %s", test.watch.Resource.Plural, test.at, got, test.delay)
		}
	}
}
