//go:build !k1.30

package virtual

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listen is the context of a controller whose events are heard.
func listen(*observed) context.Context { return context.Background() }

// hearEvents puts a recorder in the place of the controller's own: events are heard before
// client-go's correlator merges, aggregates and limits them.
func hearEvents(controller any, o *observed) {
	privateField(controller, "eventRecorder").Set(reflect.ValueOf(recorder{o}))
}

// recorder is what a controller records its events with.
type recorder struct{ observed *observed }

func (r recorder) Event(object runtime.Object, eventType, reason, message string) {
	e := entry{kind: event, eventType: eventType, reason: reason, message: message}
	if of, err := meta.Accessor(object); err == nil {
		e.name = of.GetName()
	}
	r.observed.record(e)
}

func (r recorder) Eventf(
	object runtime.Object, eventType, reason, format string, arguments ...any,
) {
	r.Event(object, eventType, reason, fmt.Sprintf(format, arguments...))
}

func (r recorder) PastEventf(
	object runtime.Object, _ metav1.Time, eventType, reason, format string, arguments ...any,
) {
	r.Eventf(object, eventType, reason, format, arguments...)
}

func (r recorder) AnnotatedEventf(
	object runtime.Object, _ map[string]string, eventType, reason, format string, arguments ...any,
) {
	r.Eventf(object, eventType, reason, format, arguments...)
}
