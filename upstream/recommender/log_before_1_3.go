//go:build !vpa1.3

package recommender

import (
	"flag"
	"io"
	"strings"

	"k8s.io/klog/v2"
)

// listen makes klog write to a new recorder. Older recommenders format their messages, which contain
// the errors: klog's own lines show which of them are warnings and errors.
func listen() *recorder {
	r := &recorder{}
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	// Every message is also written to the logs of the lower severities.
	klog.SetOutputBySeverity("ERROR", io.Discard)
	klog.SetOutputBySeverity("WARNING", io.Discard)
	klog.SetOutputBySeverity("INFO", r)
	return r
}

// Write records a line of klog: its severity, the time, the source and `] `, then the message.
func (r *recorder) Write(text []byte) (int, error) {
	line := strings.TrimSuffix(string(text), "\n")
	if _, message, ok := strings.Cut(line, "] "); ok && (line[0] == 'W' || line[0] == 'E') {
		r.add(logLine{Message: message})
	}
	return len(text), nil
}
