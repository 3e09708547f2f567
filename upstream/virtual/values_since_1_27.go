//go:build k1.27

package virtual

import (
	"math"
	"runtime"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// values are the numbers of a metric where client_golang keeps them. Its Write copies each number to an
// object of its own, which would take an eighth of the time of a reconcile.
type values struct {
	// of a counter or a gauge: the bits of a floating-point number and, of a counter, the integer that
	// is added to it
	bits, whole *uint64
	// of a histogram: the number of observations that have begun; its highest bit is the index of the
	// counts in use. Write moves these counts to the other set, which is then in use
	begun  *uint64
	counts [2]histogramCounts
}

type histogramCounts struct {
	ended   *uint64 // the number of observations that have ended
	sum     *uint64 // the bits of a floating-point number
	buckets []uint64
}

// countsInUse is the position of that bit.
const countsInUse = 63

func valuesOf(metric prometheus.Metric, kind seriesKind) (v values) {
	switch kind {
	case counter:
		v.bits, v.whole = privateNumber(metric, "valBits"), privateNumber(metric, "valInt")
	case gauge:
		v.bits, v.whole = privateNumber(metric, "valBits"), new(uint64)
	case histogram:
		v.begun = privateNumber(metric, "countAndHotIdx")
		counts := privateField(metric, "counts")
		for i := range v.counts {
			private := counts.Index(i).Interface()
			v.counts[i] = histogramCounts{
				ended:   privateNumber(private, "count"),
				sum:     privateNumber(private, "sumBits"),
				buckets: privateField(private, "buckets").Interface().([]uint64),
			}
		}
	}
	return v
}

func privateNumber(of any, name string) *uint64 {
	return privateField(of, name).Addr().Interface().(*uint64)
}

// value returns the value of a counter or a gauge.
func (v *values) value() float64 {
	return float(v.bits) + float64(atomic.LoadUint64(v.whole))
}

func float(bits *uint64) float64 { return math.Float64frombits(atomic.LoadUint64(bits)) }

// observations returns the counts of a histogram and the number of observations. Like Write, it waits
// until none is in progress.
func (v *values) observations() (counts *histogramCounts, count uint64) {
	for {
		begun := atomic.LoadUint64(v.begun)
		counts, count = &v.counts[begun>>countsInUse], begun&^(1<<countsInUse)
		if atomic.LoadUint64(counts.ended) == count {
			return counts, count
		}
		runtime.Gosched()
	}
}
