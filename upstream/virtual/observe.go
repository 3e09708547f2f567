package virtual

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// entryKind is the kind of a controller action. Events are last at each time: see observed.settled.
type entryKind uint8

const (
	getScale entryKind = iota
	listPodMetrics
	podsMetric
	objectMetric
	externalMetric
	updateScale
	updateStatus
	reconcileError
	metricIncrease // of a counter among the controller's own metrics
	metricValue    // of a gauge among them
	reconcile      // a reconcile begins; reported if there are several HPAs
	reconciled     // the reconcile ends
	event          // as the controller recorded it
	sendEvent      // the request that writes an event
)

// isRequest reports whether an action is a request to an API.
func (k entryKind) isRequest() bool { return k <= updateStatus || k == sendEvent }

// isAsynchronous reports whether an action takes place in the background.
func (k entryKind) isAsynchronous() bool { return k >= event }

// entry is one action of the controller, in the terms of the protocol.
type entry struct {
	at   time.Duration
	kind entryKind
	// of a request: the namespace in it, and the API version of an object in its body; of a request
	// that writes an event: the API version of the object that the event is about
	namespace, apiVersion string
	resource              string // of a scale; the kind of the described objects, or of an event's object
	name                  string // of the target, the HPA or a described object
	selector              string // of a query of metrics; of a scale that is written
	// of a query of a custom or an external metric: the metric and its selector and, for an object,
	// the value; for the controller's own metrics: the series and its value or increase
	metric, metricSelector, value string
	amount                        float64
	// replicas, or the number of items, or the count of an event
	replicas, statusReplicas int32
	status                   *shownStatus
	eventType, reason        string
	sent                     *sentEvent
	message                  string // of an event or an error
	err                      error
}

// sentEvent is the rest of a request that writes an event.
type sentEvent struct {
	verb, component, name string
	objectUID             string
	first, last           time.Time // when the event has occurred
}

// observed collects the controller's actions. The controller's workers call the clients; events are
// recorded and sent on goroutines of the broadcaster.
type observed struct {
	mu         sync.Mutex
	byTurns    bool // events are recorded before the next reconcile begins
	allMetrics bool // the metrics of the work queue are observed
	// Called after each request and each error, if workers are serialized.
	requested func(entryKind)
	epoch     time.Time
	entries   []entry
	events    int // entries of events, as recorded or sent
	// Whether there are entries since the controller's metrics were last read, and the time of the
	// first one; and, if workers are serialized, the changes of metrics by reconciles in progress.
	unread      bool
	firstUnread time.Duration
	paused      map[string][]entry
}

func (o *observed) record(e entry) {
	e.at = time.Since(o.epoch)
	o.mu.Lock()
	if e.kind.isAsynchronous() {
		o.events++
	}
	if e.kind == getScale && o.unread && !o.byTurns {
		// A reconcile that preceded this one has ended.
		o.recordSeries()
	}
	if !o.unread {
		o.firstUnread = e.at
	}
	o.entries = append(o.entries, e)
	o.unread = true
	o.mu.Unlock()
	if o.requested != nil && e.kind <= reconcileError {
		o.requested(e.kind)
	}
}

// recordSeries records the changes of the controller's own metrics in a reconcile that has ended. A
// reconcile in progress also reads the scale, after a failed update.
func (o *observed) recordSeries() {
	if !ownSeries.ended() && !queueSeries.ended() || len(o.entries) == 0 {
		return
	}
	o.unread = false
	before := len(o.entries)
	o.entries = ownSeries.changes(o.entries)
	if o.allMetrics {
		o.entries = queueSeries.before(o.epoch.Add(o.firstUnread)).appendTo(o.entries)
	}
	for i := range o.entries[before:] {
		o.entries[before+i].at = o.entries[before-1].at
	}
}

// pauseSeries is called before the reconcile of an HPA waits, if workers are serialized.
func (o *observed) pauseSeries(hpa string) {
	ownSeries.collect()
	o.paused[hpa] = ownSeries.increases(o.paused[hpa])
}

// recordSeriesOf records the changes of the controller's own metrics in the reconcile of an HPA that
// has ended, if workers are serialized.
func (o *observed) recordSeriesOf(hpa string, ofQueue queueCounts) {
	var changes []entry
	if ownSeries.ended() {
		changes = ownSeries.changes(o.paused[hpa])
		delete(o.paused, hpa)
	}
	if o.allMetrics {
		changes = ofQueue.appendTo(changes)
	}
	slices.SortStableFunc(changes, func(a, b entry) int { return cmp.Compare(a.metric, b.metric) })
	for i, e := range changes {
		if i > 0 && changes[i-1].metric == e.metric {
			before := &o.entries[len(o.entries)-1]
			before.amount = math.Round((before.amount+e.amount)*1e9) / 1e9
		} else {
			o.record(e)
		}
	}
}

// settled is called when all goroutines are blocked. Scheduling decides randomly whether an event
// precedes the write that follows it, so the events of one time are moved behind all other entries
// of that time: first all events as recorded, then the requests that send them. If workers are
// serialized, an event is recorded before the next reconcile begins, and names its HPA.
func (o *observed) settled(from int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unread && !o.byTurns {
		o.recordSeries()
	}
	if o.events > 0 && !o.byTurns {
		slices.SortStableFunc(o.entries[from:], func(a, b entry) int {
			switch {
			case a.at != b.at:
				return cmp.Compare(a.at, b.at)
			case a.kind.isAsynchronous() || b.kind.isAsynchronous():
				return cmp.Compare(max(a.kind, reconciled), max(b.kind, reconciled))
			default:
				return 0
			}
		})
		o.events = 0
	}
	return len(o.entries)
}

// reset drops the entries that have been reported.
func (o *observed) reset() {
	clear(o.entries)
	o.entries = o.entries[:0]
}

// present is the scenario whose errors are recorded: upstream's error handlers are global.
var present atomic.Pointer[observed]

// recordError records an error that upstream's handlers receive.
func recordError(message string) {
	if o := present.Load(); o != nil {
		o.record(entry{kind: reconcileError, message: message})
	} else {
		fmt.Fprintln(os.Stderr, message)
	}
}
