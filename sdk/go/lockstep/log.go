package lockstep

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// present is the scenario whose errors are recorded: the handlers of errors are global.
var present atomic.Pointer[observed]

func recordError(message string) {
	if o := present.Load(); o != nil {
		o.record(nil, "error", map[string]string{"message": message})
	} else {
		fmt.Fprintln(os.Stderr, message)
	}
}

// recordErrors replaces the error handlers of apimachinery. One of them sleeps until a millisecond
// after the last error, by a clock that is decades ahead of that of a bubble.
func recordErrors() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, _ ...any) {
			if err != nil {
				message = err.Error()
			}
			recordError(message)
		},
	}
}

// Logger returns a logger that reports errors as the errors of a reconcile, and drops everything else:
// for the Logger of a manager.
func Logger() logr.Logger { return logr.New(errorSink{}) }

type errorSink struct{ values []any }

func (errorSink) Init(logr.RuntimeInfo)          {}
func (errorSink) Enabled(int) bool               { return false }
func (errorSink) Info(int, string, ...any)       {}
func (s errorSink) WithName(string) logr.LogSink { return s }

func (s errorSink) WithValues(values ...any) logr.LogSink {
	return errorSink{append(slices.Clip(s.values), values...)}
}

func (errorSink) Error(err error, message string, _ ...any) {
	if err != nil {
		message += ": " + err.Error()
	}
	recordError(message)
}
