//go:build vpa1.3

package recommender

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// listen makes klog write to a new recorder.
func listen() *recorder {
	r := &recorder{}
	klog.SetLoggerWithOptions(logr.New(r), klog.ContextualLogger(true))
	return r
}

func (r *recorder) Init(logr.RuntimeInfo) {}

func (r *recorder) Enabled(level int) bool { return level == 0 }

func (r *recorder) Info(_ int, message string, values ...any) {
	var found any
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "error" || values[i] == "err" {
			found = values[i+1]
		}
	}
	// Messages without an error only report progress.
	if err, ok := found.(error); ok {
		r.Error(err, message)
	}
}

func (r *recorder) Error(err error, message string, _ ...any) {
	line := logLine{Message: message}
	if err != nil {
		line.Error = fmt.Sprint(err)
	}
	r.add(line)
}

func (r *recorder) WithValues(...any) logr.LogSink { return r }

func (r *recorder) WithName(string) logr.LogSink { return r }
