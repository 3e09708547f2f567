//go:build k1.27

package virtual

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// subsystem is the prefix of the names of the controller's metrics.
const subsystem = "horizontal_pod_autoscaler_controller_"

// manySeries is larger than the number of series of any collector.
const manySeries = 1 << 12

// reconciliations is the counter that each reconcile increments when it ends.
const reconciliations = "reconciliations_total"

// skips is the counter of reconciles that are skipped because the cache is stale.
const skips = "stale_sync_skips_total"

// ownSeries are the series of the controller's own Prometheus metrics. The registry is the process's,
// which runs one controller at a time.
var ownSeries = controllerSeries{
	// A channel that is made in a bubble can't be used in another one.
	collected: make(chan prometheus.Metric, manySeries),
}

type controllerSeries struct {
	collectors []prometheus.Collector
	found      map[prometheus.Metric]bool
	known      []*oneSeries
	collected  chan prometheus.Metric
	changed    []*oneSeries
}

// oneSeries is a series with its value when the series were last reported.
type oneSeries struct {
	// Without the prefix of all names: reconciliations_total, {error=none}, and both together. The
	// sum, the count and the buckets of a histogram are series of their own.
	name, labels, series string
	sum, count           string
	kind                 seriesKind
	values               values
	// of a histogram: its sum, its count and its buckets
	last, now float64
	nowCount  uint64
	buckets   []bucket
	reported  bool // a gauge has been reported
}

// bucket is a bucket of a histogram with the number of its own observations, which are not in a lower
// bucket.
type bucket struct {
	series    string
	last, now uint64
}

type seriesKind uint8

const (
	counter seriesKind = iota
	gauge
	histogram
)

// start makes all series begin anew, as in a new process.
func (s *controllerSeries) start() {
	// Finds nothing until the first controller has run.
	s.find()
	for _, collector := range s.collectors {
		switch metric := collector.(type) {
		case interface{ Reset() }: // with labels
			metric.Reset()
		case interface{ Set(float64) }: // without
			metric.Set(0)
		}
	}
	s.found, s.known = map[prometheus.Metric]bool{}, nil
}

// find finds the collectors of the controller's metrics. The controller registers them when it
// runs. Gathering the whole registry for each reconcile would take most of the time: it has several
// hundred other series.
func (s *controllerSeries) find() {
	if s.collectors != nil {
		return
	}
	s.collectors = collectorsOf(subsystem)
}

// collectorsOf returns the collectors of the metrics whose names have a prefix.
func collectorsOf(prefix string) (found []prometheus.Collector) {
	registry := legacyregistry.Registerer()
	collectors := privateField(registry, "collectorsByID").Interface()
	described := make(chan *prometheus.Desc, manySeries)
	for _, collector := range collectors.(map[uint64]prometheus.Collector) {
		collector.Describe(described)
		for len(described) > 0 {
			if desc := <-described; strings.Contains(desc.String(), `"`+prefix) {
				found = append(found, collector)
			}
		}
	}
	return found
}

// collect reads the current values of all counters and gauges.
func (s *controllerSeries) collect() {
	s.find()
	for _, collector := range s.collectors {
		collector.Collect(s.collected)
		for len(s.collected) > 0 {
			if metric := <-s.collected; !s.found[metric] {
				s.found[metric] = true
				s.known = append(s.known, newSeries(metric))
			}
		}
	}
	for _, one := range s.known {
		if one.kind != histogram {
			one.now = one.values.value()
		}
	}
}

// nameOf reads the name of a metric, without the subsystem, from its description.
func nameOf(metric prometheus.Metric, subsystem string) string {
	_, name, _ := strings.Cut(metric.Desc().String(), `"`+subsystem)
	name, _, _ = strings.Cut(name, `"`)
	return name
}

func newSeries(metric prometheus.Metric) *oneSeries {
	one := &oneSeries{name: nameOf(metric, subsystem)}
	var out dto.Metric
	if err := metric.Write(&out); err != nil {
		panic(err)
	}
	switch {
	case out.Histogram != nil:
		one.kind = histogram
		one.buckets = make([]bucket, len(out.Histogram.Bucket)+1)
	case out.Gauge != nil:
		one.kind = gauge
	}
	one.values = valuesOf(metric, one.kind)
	labels := make([]string, len(out.Label), len(out.Label)+1)
	for i, label := range out.Label {
		labels[i] = label.GetName() + "=" + label.GetValue()
	}
	one.labels = joined(labels)
	for i := range one.buckets {
		bound := math.Inf(1)
		if i < len(out.Histogram.Bucket) {
			bound = out.Histogram.Bucket[i].GetUpperBound()
		}
		le := "le=" + strconv.FormatFloat(bound, 'g', -1, 64)
		one.buckets[i].series = one.name + "_bucket" + joined(append(slices.Clone(labels), le))
	}
	one.series = one.name + one.labels
	one.sum, one.count = one.name+"_sum"+one.labels, one.name+"_count"+one.labels
	return one
}

// joined returns labels in alphabetical order.
func joined(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	slices.Sort(labels)
	return "{" + strings.Join(labels, ",") + "}"
}

// readHistogram reads the sum of a histogram, the number of its observations, and those of each
// bucket. The last bucket is not among those of the histogram.
func (one *oneSeries) readHistogram() {
	counts, count := one.values.observations()
	one.now, one.nowCount = float(counts.sum), count
	last := &one.buckets[len(counts.buckets)]
	last.now = count
	for i := range counts.buckets {
		one.buckets[i].now = atomic.LoadUint64(&counts.buckets[i])
		last.now -= one.buckets[i].now
	}
}

// ended reports whether a reconcile has ended, or was skipped, since the series were last reported.
func (s *controllerSeries) ended() bool {
	s.collect()
	for _, one := range s.known {
		if (one.name == reconciliations || one.name == skips) && one.now != one.last {
			return true
		}
	}
	return false
}

// changes appends an entry for each series that has changed since the series were last reported: the
// increase of a counter, or the value of a gauge. They are in order of their names. Of a histogram,
// the sum, the number of observations and each bucket are series. The number of observations is
// appended only if it is not the value of the counter with the same labels, and then as the difference.
// Of each bucket except the lowest one, the increase that is not in a lower bucket is appended. collect
// or ended precedes the call.
func (s *controllerSeries) changes(entries []entry) []entry {
	before := len(entries)
	entries = s.increases(entries)
	for _, one := range s.known {
		if one.kind == gauge && (one.now != one.last || !one.reported && one.labels != "") {
			value := entry{kind: metricValue, metric: one.series, amount: one.now}
			entries = append(entries, value)
			one.last, one.reported = one.now, true
		}
	}
	slices.SortFunc(entries[before:], func(a, b entry) int { return cmp.Compare(a.metric, b.metric) })
	return entries
}

// increases appends the entries of counters and histograms among the changes, in any order.
func (s *controllerSeries) increases(entries []entry) []entry {
	s.changed = s.changed[:0]
	for _, one := range s.known {
		if one.kind == counter && one.now != one.last {
			s.changed = append(s.changed, one)
		}
	}
	for _, one := range s.known {
		if one.kind != histogram {
			continue
		}
		counted := slices.IndexFunc(s.changed, func(c *oneSeries) bool { return c.labels == one.labels })
		if counted < 0 {
			continue
		}
		like := s.changed[counted]
		one.readHistogram()
		if observed := float64(one.nowCount); observed != like.now {
			entries = append(entries, increase(one.count, observed-like.now))
		}
		// Durations are whole nanoseconds, but sums are floating-point numbers.
		if sum := math.Round((one.now-one.last)*1e9) / 1e9; sum != 0 {
			entries = append(entries, increase(one.sum, sum))
		}
		one.last = one.now
		for i := range one.buckets {
			if b := &one.buckets[i]; b.now != b.last {
				if i > 0 {
					entries = append(entries, increase(b.series, float64(b.now-b.last)))
				}
				b.last = b.now
			}
		}
	}
	for _, one := range s.changed {
		entries = append(entries, increase(one.series, one.now-one.last))
		one.last = one.now
	}
	return entries
}
