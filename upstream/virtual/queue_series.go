package virtual

import (
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The series of the work queue, without the label name=horizontalpodautoscaler. Up to Kubernetes
// 1.13, they have other names, for instance horizontalpodautoscaler_adds.
const (
	queueSubsystem = "workqueue_"
	addsSeries     = queueSubsystem + "adds_total"
	latencySeries  = queueSubsystem + "queue_duration_seconds_sum"
	retriesSeries  = queueSubsystem + "retries_total"
	workSeries     = queueSubsystem + "work_duration_seconds_sum"
)

// queueSeries are the Prometheus metrics of the controller's work queue.
var queueSeries workQueueSeries

// workQueueSeries counts what client-go's work queue reports to its metrics provider. In the
// kube-controller-manager, the provider is k8s.io/component-base/metrics/prometheus/workqueue.
//
// A reconcile is reported with what has changed since the previous one began: at that time all
// other goroutines are blocked, whereas what follows a reconcile is also queued in the background.
// The number of keys in the queue and the gauges of unfinished work are left out: they depend on
// which worker is faster, or on a timer.
type workQueueSeries struct {
	mu         sync.Mutex
	isReported bool // in this scenario
	byTurns    bool
	now, begun queueCounts
	// How long the last key waited in the queue for a worker.
	latency int64
	// Whether the last reconcile of which a worker has taken the key has ended.
	done    bool
	changes []queueChanges // by reconciles that are not yet reported, unless workers are serialized
	// What readQueue has returned at the start, and the latency that it has returned last.
	base        queueCounts
	lastLatency int64
}

// readQueue returns the totals of the process if upstream's own provider is in use, which then
// can't be replaced. It is nil otherwise.
var readQueue func() queueCounts

// queueCounts are counters of keys, and sums of durations in nanoseconds.
type queueCounts struct{ adds, latency, retries, worked int64 }

// queueChanges are the changes between the beginnings of two reconciles.
type queueChanges struct {
	begin time.Time
	queueCounts
}

// provide makes all queues that are created afterwards report their metrics. Upstream allows one
// provider per process.
func (s *workQueueSeries) provide() { workqueue.SetProvider(queueMetrics{}) }

// calm stops or slows down timers of a new controller's queue that have no observable effect. In
// virtual time, they fire many times between two reconciles, and would take much of the processor time.
//
// The heartbeat, a check for delayed keys every ten seconds, is stopped: the timer of the queue for
// the first of these keys is exact here. The queue updates the gauges of unfinished work, which are not
// observed, once per hour instead of twice per second. That period has an effect because the goroutine
// that reads it has not run yet; it must end before a session does, at its next tick.
func calm(controller any) {
	queue := privateField(controller, "queue")
	for queue.Kind() == reflect.Interface || queue.Kind() == reflect.Pointer {
		queue = queue.Elem()
		if queue.Kind() != reflect.Struct {
			continue
		}
		private := queue.Addr().Interface()
		if queue.FieldByName("heartbeat").IsValid() {
			if heartbeat, ok := privateField(private, "heartbeat").Interface().(interface{ Stop() }); ok {
				heartbeat.Stop()
			}
		}
		if queue.FieldByName(unfinishedWorkPeriod).IsValid() {
			privateField(private, unfinishedWorkPeriod).SetInt(int64(time.Hour))
			return
		}
		// A queue with delays or limits embeds another one.
		queue = queue.Field(0)
	}
}

const unfinishedWorkPeriod = "unfinishedWorkUpdatePeriod"

// start makes all series begin anew, as in a new process.
func (s *workQueueSeries) start(isReported, byTurns bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReported, s.byTurns = isReported, byTurns
	s.now, s.begun = queueCounts{}, queueCounts{}
	s.done, s.changes = false, s.changes[:0]
	if isReported && readQueue != nil {
		s.base = readQueue()
		s.lastLatency = s.base.latency
	}
}

// observe makes the queue of a controller report each key that a worker takes.
func (s *workQueueSeries) observe(controller any) {
	queue := privateField(controller, "queue")
	queue.Set(reflect.ValueOf(&observedQueue{queue.Interface().(rateLimitingQueue)}))
}

// observedQueue forwards all calls to upstream's queue.
type observedQueue struct{ rateLimitingQueue }

func (q *observedQueue) Get() (key queueKey, shutdown bool) {
	key, shutdown = q.rateLimitingQueue.Get()
	if !shutdown {
		queueSeries.read()
	}
	return key, shutdown
}

// read is called after a worker has taken a key.
func (s *workQueueSeries) read() {
	if !s.isReported || readQueue == nil {
		return
	}
	latency := readQueue().latency
	last := s.lastLatency
	s.lastLatency = latency
	s.taken(latency - last)
}

// taken is called when a worker takes a key.
func (s *workQueueSeries) taken(latency int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency, s.done = latency, false
	if !s.byTurns {
		s.changes = append(s.changes, queueChanges{time.Now(), s.begin(latency)})
	}
}

// latencyOfLast returns how long the last key waited. The caller has taken it.
func (s *workQueueSeries) latencyOfLast() int64 {
	s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency
}

// beginTurn returns what has changed since the previous reconcile began, if workers are serialized.
func (s *workQueueSeries) beginTurn(latency int64) queueCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin(latency)
}

func (s *workQueueSeries) begin(latency int64) queueCounts {
	latency += s.now.latency
	if s.isReported && readQueue != nil {
		s.now = readQueue().since(s.base)
	}
	s.now.latency = latency
	before := s.begun
	s.begun = s.now
	return s.now.since(before)
}

func (c queueCounts) since(before queueCounts) queueCounts {
	return queueCounts{
		adds:    c.adds - before.adds,
		latency: c.latency - before.latency,
		retries: c.retries - before.retries,
		worked:  c.worked - before.worked,
	}
}

// ended reports whether the last reconcile has ended.
func (s *workQueueSeries) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// before returns the changes of the last reconcile that began at a time or before it. Keys of
// deleted HPAs precede it; their changes are dropped.
func (s *workQueueSeries) before(end time.Time) (found queueCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := 0
	for begun < len(s.changes) && !s.changes[begun].begin.After(end) {
		found = s.changes[begun].queueCounts
		begun++
	}
	s.changes = slices.Delete(s.changes, 0, begun)
	return found
}

func (s *workQueueSeries) count(count *int64, amount int64) {
	s.mu.Lock()
	*count += amount
	s.mu.Unlock()
}

// worked is called when a worker has processed a key.
func (s *workQueueSeries) worked(duration int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.worked += duration
	s.done = true
}

// appendTo appends an entry for each series that has changed, in order of their names.
func (c queueCounts) appendTo(entries []entry) []entry {
	add := func(series string, amount, unit int64) {
		if amount != 0 {
			entries = append(entries, increase(series, float64(amount)/float64(unit)))
		}
	}
	add(addsSeries, c.adds, 1)
	add(latencySeries, c.latency, 1e9)
	add(retriesSeries, c.retries, 1)
	add(workSeries, c.worked, 1e9)
	return entries
}

func increase(series string, amount float64) entry {
	return entry{kind: metricIncrease, metric: series, amount: amount}
}

// queueMetrics is the metrics provider of work queues. Only the controller's queue has a name.
type queueMetrics struct{}

func (queueMetrics) NewDepthMetric(string) workqueue.GaugeMetric { return unobserved{} }

func (queueMetrics) NewAddsMetric(string) workqueue.CounterMetric { return addsMetric{} }

func (queueMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return retriesMetric{} }

type (
	addsMetric    struct{}
	retriesMetric struct{}
	latencyMetric struct{}
	workMetric    struct{}
	unobserved    struct{}
)

func (addsMetric) Inc()    { queueSeries.count(&queueSeries.now.adds, 1) }
func (retriesMetric) Inc() { queueSeries.count(&queueSeries.now.retries, 1) }

func (latencyMetric) Observe(latency float64) { queueSeries.taken(nanoseconds(latency)) }
func (workMetric) Observe(worked float64) {
	queueSeries.worked(nanoseconds(worked))
}

func (unobserved) Inc()            {}
func (unobserved) Dec()            {}
func (unobserved) Set(float64)     {}
func (unobserved) Observe(float64) {}

// nanoseconds undoes the division of a whole number of nanoseconds.
func nanoseconds(duration float64) int64 { return int64(math.Round(duration * queueDurationUnit)) }
