package recommender

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
)

// benchmarkOpen is a workload of three pods with two containers each.
func benchmarkOpen(b *testing.B) *openRequest {
	q := new(openRequest)
	if err := json.Unmarshal([]byte(openWeb), q); err != nil {
		b.Fatal(err)
	}
	q.Flags = nil
	template := q.Apply[2].SetPod
	q.Apply = q.Apply[:2]
	for i := range 3 {
		pod := template.DeepCopy()
		pod.Name = fmt.Sprintf("web-%d", i)
		pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
		pod.Spec.Containers[1].Name = "sidecar"
		q.Apply = append(q.Apply, change{SetPod: pod})
	}
	return q
}

// benchmarkMetrics is the usage of all containers in a minute.
func benchmarkMetrics(minute int) *metricsResponse {
	metrics := &metricsResponse{}
	for i := range 3 {
		item := podMetrics{
			Namespace: "ns", Name: fmt.Sprintf("web-%d", i),
			Timestamp: 946684800 + int64(minute)*60,
		}
		for j, name := range []string{"app", "sidecar"} {
			varied := (minute*31 + i*17 + j*5) % 100
			item.Containers = append(item.Containers, containerMetrics{
				Name:   name,
				CPU:    fmt.Sprintf("%dm", 100+varied*7),
				Memory: fmt.Sprintf("%d", (200+varied)<<20),
			})
		}
		metrics.Items = append(metrics.Items, item)
	}
	return metrics
}

// BenchmarkBare measures runs of the recommender without the protocol. The timer of the benchmark is
// not used inside the bubble: it would read the clock of the bubble.
func BenchmarkBare(b *testing.B) {
	q := benchmarkOpen(b)
	match := func(string, string) (bool, error) { return true, nil }
	ok := testing.RunTests(match, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) {
		tune()
		synctest.Test(t, func(t *testing.T) {
			s, err := openSession(q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.N {
				until := int64(i+1) * 60e9
				metrics := change{SetMetrics: benchmarkMetrics(i + 1)}
				step := &stepRequest{Apply: []change{metrics}, Until: until}
				if _, err := s.step(step); err != nil {
					t.Fatal(err)
				}
			}
		})
	}}})
	if !ok {
		b.Fatal("the bubble failed")
	}
}
