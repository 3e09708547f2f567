package lockstep

import (
	"time"

	"kube-lockstep.dev/sdk/apiserver"
)

// lag is the delay of the controller's caches of HPAs and pods from a time on.
type lag struct {
	from time.Time
	span time.Duration
}

// delay says how long after its change an event of a watch is delivered, as docs/protocol.md
// describes.
func (w *world) delay(e apiserver.WatchEvent) time.Duration {
	resource := requestOf(e.Watch)
	if resource != hpaResource && resource != podResource {
		return 0
	}
	due := e.At
	for _, l := range w.lags {
		switch {
		case l.from.After(e.At):
		case l.span > 0:
			due = e.At.Add(l.span + 2*time.Nanosecond)
		default:
			due = e.At
		}
	}
	if last := w.due[e.Watch]; last.After(e.At) {
		if resource == hpaResource {
			last = last.Add(time.Nanosecond)
		}
		if last.After(due) {
			due = last
		}
	}
	w.due[e.Watch] = due
	return due.Sub(e.At)
}
