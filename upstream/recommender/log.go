package recommender

import "sync"

// recorder records the messages that the recommender logs as errors or at verbosity 0.
type recorder struct {
	mu    sync.Mutex
	lines []logLine
}

// take returns the messages since the last call.
func (r *recorder) take() []logLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	if lines == nil {
		lines = []logLine{}
	}
	return lines
}

func (r *recorder) add(line logLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}
