//go:build !k1.30

package virtual

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/watch"
)

// listen returns the context of a controller whose events are recorded.
func listen(*observed) context.Context { return context.Background() }

// recordEvents watches the broadcaster of the controller's events: it records them before client-go's
// correlator merges, aggregates and limits them. Nothing else gives access to the broadcaster.
func recordEvents(controller any, o *observed) (stop func()) {
	recorder := privateField(controller, "eventRecorder").Elem().Elem()
	// Only newer releases also return an error, which is nil before the broadcaster ends.
	watched := recorder.FieldByName("Broadcaster").MethodByName("Watch").Call([]reflect.Value{})
	watcher := watched[0].Interface().(watch.Interface)
	go func() {
		for received := range watcher.ResultChan() {
			if e, ok := received.Object.(*Event); ok {
				o.record(entry{
					kind: event, name: e.InvolvedObject.Name, eventType: e.Type, reason: e.Reason,
					message: e.Message,
				})
			}
		}
	}()
	return watcher.Stop
}
