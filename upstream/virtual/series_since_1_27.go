//go:build k1.27

package virtual

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

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
	known      map[prometheus.Metric]*oneSeries
	collected  chan prometheus.Metric
	out        dto.Metric
	changed    []*oneSeries
	entries    []entry
	sampled    bool // not each change of a histogram is reported
}

// oneSeries is a series with its value when the series were last reported.
type oneSeries struct {
	// Without the prefix of all names: reconciliations_total, {error=none}, and both together. The
	// sum, the count and the buckets of a histogram are series of their own.
	name, labels, series string
	sum, count           string
	metric               prometheus.Metric
	kind                 seriesKind
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
func (s *controllerSeries) start(sampled bool) {
	s.sampled = sampled
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
	s.known = map[prometheus.Metric]*oneSeries{}
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
			metric := <-s.collected
			one := s.known[metric]
			if one == nil {
				one = s.add(metric)
			}
			if one.kind != histogram {
				s.read(one)
			}
		}
	}
}

// nameOf reads the name of a metric, without the subsystem, from its description.
func nameOf(metric prometheus.Metric, subsystem string) string {
	_, name, _ := strings.Cut(metric.Desc().String(), `"`+subsystem)
	name, _, _ = strings.Cut(name, `"`)
	return name
}

func (s *controllerSeries) add(metric prometheus.Metric) *oneSeries {
	one := &oneSeries{metric: metric, name: nameOf(metric, subsystem)}
	s.read(one)
	switch {
	case s.out.Histogram != nil:
		one.kind = histogram
		one.buckets = make([]bucket, len(s.out.Histogram.Bucket)+1)
	case s.out.Gauge != nil:
		one.kind = gauge
	}
	labels := make([]string, len(s.out.Label), len(s.out.Label)+1)
	for i, label := range s.out.Label {
		labels[i] = label.GetName() + "=" + label.GetValue()
	}
	one.labels = joined(labels)
	for i := range one.buckets {
		bound := math.Inf(1)
		if i < len(s.out.Histogram.Bucket) {
			bound = s.out.Histogram.Bucket[i].GetUpperBound()
		}
		le := "le=" + strconv.FormatFloat(bound, 'g', -1, 64)
		one.buckets[i].series = one.name + "_bucket" + joined(append(slices.Clone(labels), le))
	}
	one.series = one.name + one.labels
	one.sum, one.count = one.name+"_sum"+one.labels, one.name+"_count"+one.labels
	s.known[metric] = one
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

func (s *controllerSeries) read(one *oneSeries) {
	s.out.Counter, s.out.Gauge, s.out.Histogram = nil, nil, nil
	if err := one.metric.Write(&s.out); err != nil {
		panic(err)
	}
	switch {
	case s.out.Counter != nil:
		one.now = s.out.Counter.GetValue()
	case s.out.Gauge != nil:
		one.now = s.out.Gauge.GetValue()
	case s.out.Histogram != nil:
		one.now, one.nowCount = s.out.Histogram.GetSampleSum(), s.out.Histogram.GetSampleCount()
		one.readBuckets(s.out.Histogram)
	}
}

// readBuckets reads the numbers of observations, which Prometheus reports cumulatively. The last bucket
// is not among those of the histogram. Nothing is read before add has made the buckets.
func (one *oneSeries) readBuckets(histogram *dto.Histogram) {
	var below uint64
	for i := range one.buckets {
		upTo := histogram.GetSampleCount()
		if i < len(histogram.Bucket) {
			upTo = histogram.Bucket[i].GetCumulativeCount()
		}
		one.buckets[i].now, below = upTo-below, upTo
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

// changes returns an entry for each series that has changed since the series were last reported: the
// increase of a counter, or the value of a gauge. They are in order of their names. Of a histogram,
// the sum, the number of observations and each bucket are series. The number of observations is
// returned only if it is not the value of the counter with the same labels, and then as the difference.
// Of each bucket except the lowest one, the increase that is not in a lower bucket is returned. collect
// or ended precedes the call. waited says whether time has passed in the reconcile.
func (s *controllerSeries) changes(waited bool) []entry {
	entries := s.increases(waited)
	for _, one := range s.known {
		if one.kind == gauge && (one.now != one.last || !one.reported && one.labels != "") {
			value := entry{kind: metricValue, metric: one.series, amount: one.now}
			entries = append(entries, value)
			one.last, one.reported = one.now, true
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.metric, b.metric) })
	return entries
}

// increases returns the entries of counters and histograms among the changes, in any order.
//
// Reading a histogram allocates each of its buckets, and takes longer than all else here. If series
// are sampled and no time has passed, a histogram is read only in the first two reconciles that
// change the counter with its labels, and in each sixteenth. A number of observations that differs
// is then reported.
func (s *controllerSeries) increases(waited bool) []entry {
	entries := s.entries[:0]
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
		if s.sampled && !waited && like.now > 2 && math.Mod(like.now, 16) != 0 {
			continue
		}
		s.read(one)
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
	s.entries = entries
	return entries
}
