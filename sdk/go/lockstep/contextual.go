package lockstep

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
)

// reconciling returns the HPA that a request is about and the identity of its reconcile, from the
// logger in its context. controller-runtime gives each reconcile a logger with these values. They
// are known if the controller logs to [Logger].
func reconciling(ctx context.Context) (hpa, id string) {
	logger, err := logr.FromContext(ctx)
	if err != nil {
		return "", ""
	}
	sink, _ := logger.GetSink().(errorSink)
	values := map[string]string{}
	for i := 0; i+1 < len(sink.values); i += 2 {
		values[fmt.Sprint(sink.values[i])] = fmt.Sprint(sink.values[i+1])
	}
	if values["controllerKind"] != hpaKind {
		return "", ""
	}
	return values["name"], values["reconcileID"]
}

// enter is called at the beginning of a request. If the context names a reconcile, it belongs to
// that one, which ends when the goroutine is idle or begins another one.
func (t *turns) enter(ctx context.Context) *turn {
	one := t.present()
	if t == nil || one != nil && one.id == "" {
		return one
	}
	hpa, id := reconciling(ctx)
	if one != nil && one.id != id {
		t.done()
		one = nil
	}
	if one == nil && id != "" {
		t.took()
		one = t.present()
		one.hpa, one.id = hpa, id
	}
	if one != nil {
		one.busy = true
	}
	return one
}

// leave is called at the end of a request.
func (t *turns) leave() {
	if one := t.present(); one != nil {
		one.busy = false
	}
}

// endIdle ends the reconciles of controller-runtime that are not in a request. It is called when all
// goroutines are blocked.
func (t *turns) endIdle() {
	if t == nil {
		return
	}
	t.mu.Lock()
	var idle []*turn
	for goroutine, one := range t.taken {
		if one.id != "" && !one.busy {
			idle = append(idle, one)
			delete(t.taken, goroutine)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(idle, func(a, b *turn) int { return a.number - b.number })
	for _, one := range idle {
		if one.acted {
			t.finish(one)
		}
	}
}
