package virtual

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// metricsTable holds the response of metrics.k8s.io.
type metricsTable struct {
	mu        sync.Mutex
	timestamp metav1.Time
	window    metav1.Duration
	rows      []metricsRow
	index     map[string]int
	unsorted  bool // rows were added
	// change increases with each change, which invalidates the cached answers. The controller does
	// not modify them.
	change  int
	answers map[string]*metricsAnswer
}

type metricsRow struct {
	metrics      PodMetrics
	ownTimestamp bool
}

type metricsAnswer struct {
	selector labels.Selector
	change   int
	list     PodMetricsList
}

func newMetricsTable() *metricsTable {
	return &metricsTable{index: map[string]int{}, answers: map[string]*metricsAnswer{}}
}

// list returns the pods whose labels match, sorted by name, as by metrics-server.
func (t *metricsTable) list(text string) (*PodMetricsList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer, ok := t.answers[text]
	if !ok {
		selector, err := labels.Parse(text)
		if err != nil {
			return nil, err
		}
		answer = &metricsAnswer{selector: selector, change: -1}
		t.answers[text] = answer
	}
	if answer.change == t.change {
		return &answer.list, nil
	}
	answer.change = t.change
	t.sort()
	answer.list.Items = answer.list.Items[:0]
	for i := range t.rows {
		row := &t.rows[i]
		if !answer.selector.Matches(labels.Set(row.metrics.Labels)) {
			continue
		}
		answer.list.Items = append(answer.list.Items, row.metrics)
		item := &answer.list.Items[len(answer.list.Items)-1]
		item.Window = t.window
		if !row.ownTimestamp {
			item.Timestamp = t.timestamp
		}
	}
	return &answer.list, nil
}

// sort sorts the rows by the names of their pods.
func (t *metricsTable) sort() {
	if !t.unsorted {
		return
	}
	t.unsorted = false
	slices.SortFunc(t.rows, func(a, b metricsRow) int {
		return strings.Compare(a.metrics.Name, b.metrics.Name)
	})
	for i := range t.rows {
		t.index[t.rows[i].metrics.Name] = i
	}
}

func (t *metricsTable) delete(pods []string) {
	gone := map[string]bool{}
	for _, pod := range pods {
		if _, ok := t.index[pod]; ok {
			gone[pod] = true
			delete(t.index, pod)
		}
	}
	if len(gone) == 0 {
		return
	}
	rows := t.rows[:0]
	for _, row := range t.rows {
		if !gone[row.metrics.Name] {
			t.index[row.metrics.Name] = len(rows)
			rows = append(rows, row)
		}
	}
	clear(t.rows[len(rows):])
	t.rows = rows
}

func (t *metricsTable) set(row metricsRow) {
	if i, ok := t.index[row.metrics.Name]; ok {
		t.rows[i] = row
		return
	}
	t.index[row.metrics.Name] = len(t.rows)
	t.rows = append(t.rows, row)
	t.unsorted = true
}

// setMetrics applies a change of the response of metrics.k8s.io.
func (c *namespaced) setMetrics(change *podMetricsChange) error {
	t := c.metrics
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change++
	if change.timestamp != nil {
		t.timestamp = c.time(*change.timestamp)
	}
	if change.window != nil {
		t.window = metav1.Duration{Duration: *change.window}
	}
	t.delete(change.delete)
	for i := range change.set {
		row, err := c.metricsRow(&change.set[i])
		if err != nil {
			return err
		}
		t.set(row)
	}
	return nil
}

func (c *namespaced) metricsRow(s *sample) (metricsRow, error) {
	template, ok := c.templates[s.template]
	if !ok {
		return metricsRow{}, fmt.Errorf("podMetrics: there is no template %q", s.template)
	}
	containers := make([]ContainerMetrics, len(s.containers))
	for i, container := range s.containers {
		list := make(usageList, len(container.resources))
		for _, usage := range container.resources {
			quantity, err := parseQuantity(usage[1])
			if err != nil {
				return metricsRow{}, fmt.Errorf("podMetrics: pod %s: %w", s.pod, err)
			}
			list[usageName(usage[0])] = quantity
		}
		containers[i] = ContainerMetrics{Name: container.container, Usage: list}
	}
	row := metricsRow{metrics: PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: s.pod, Namespace: c.namespace, Labels: template.labels},
		Containers: containers,
	}}
	if s.timestamp != nil {
		row.ownTimestamp = true
		row.metrics.Timestamp = c.time(*s.timestamp)
	}
	return row, nil
}

// parseQuantity parses a quantity as API clients receive it: from its canonical text.
func parseQuantity(text string) (resource.Quantity, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return quantity, fmt.Errorf("quantity %q: %w", text, err)
	}
	if canonical := quantity.String(); canonical != text {
		return resource.ParseQuantity(canonical)
	}
	return quantity, nil
}

// time is a time with the precision of the API: whole seconds.
func (c *cluster) time(sinceStart time.Duration) metav1.Time {
	return metav1.Time{Time: c.observed.epoch.Add(floorSecond(sinceStart))}
}

func floorSecond(d time.Duration) time.Duration {
	floor := d.Truncate(time.Second)
	if floor > d {
		floor -= time.Second
	}
	return floor
}
