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

// listen returns the context of a controller whose events are recorded.
func listen(*observed) context.Context { return context.Background() }

// recordEvents replaces the controller's recorder: events are recorded before client-go's correlator
// merges, aggregates and limits them.
func recordEvents(controller any, o *observed) {
	privateField(controller, "eventRecorder").Set(reflect.ValueOf(recorder{o}))
}

// recorder records the controller's events.
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
