package virtual

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// entryKind is what the controller did. Events come last at each instant: see observed.take.
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
	reconcile  // an HPA's turn begins; told if there are several
	reconciled // its reconcile is over
	event
)

// entry is one thing that the controller did, in the words of the protocol.
type entry struct {
	at       time.Duration
	kind     entryKind
	resource string // of a scale; the kind of a described object
	name     string // of the target, the HPA or a described object
	selector string // of a query of metrics
	// of a query of a custom or an external metric; the value of an object's
	metric, metricSelector, value string
	// replicas, or the number of items
	replicas, statusReplicas int32
	status                   *shownStatus
	eventType, reason        string
	message                  string // of an event or an error
	err                      error
}

// observed collects what the controller does. The clients are called by the controller's workers;
// events come through the broadcaster's goroutine.
type observed struct {
	mu      sync.Mutex
	byTurns bool // events come before the next turn begins
	epoch   time.Time
	entries []entry
	events  int
}

func (o *observed) record(e entry) {
	e.at = time.Since(o.epoch)
	o.mu.Lock()
	if e.kind == event {
		o.events++
	}
	o.entries = append(o.entries, e)
	o.mu.Unlock()
}

// settled is called when nothing moves any more. An event overtakes or not the write that follows
// it, by chance of scheduling: so those of an instant are put behind everything else of it. Where
// workers take turns, an event is there before the next turn begins, and says whose it is.
func (o *observed) settled(from int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.events > 0 && !o.byTurns {
		slices.SortStableFunc(o.entries[from:], func(a, b entry) int {
			switch {
			case a.at != b.at:
				return int(min(max(a.at-b.at, -1), 1))
			case (a.kind == event) == (b.kind == event):
				return 0
			case a.kind == event:
				return 1
			default:
				return -1
			}
		})
		o.events = 0
	}
	return len(o.entries)
}

// reset forgets what has been reported.
func (o *observed) reset() {
	clear(o.entries)
	o.entries = o.entries[:0]
}

// present is the scenario whose errors are heard: upstream's error handlers are global.
var present atomic.Pointer[observed]

// heardError records an error that upstream's handlers are given.
func heardError(message string) {
	if o := present.Load(); o != nil {
		o.record(entry{kind: reconcileError, message: message})
	} else {
		fmt.Fprintln(os.Stderr, message)
	}
}
