package lockstep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// host reads requests and writes answers. It reads on the goroutine of the bubble: a blocking read is
// not durable, so the clock stands still meanwhile.
type host struct {
	engine   Engine
	in       *bufio.Reader
	mu       sync.Mutex
	out      *bufio.Writer
	answered atomic.Int64 // how many requests
	reading  atomic.Bool  // it waits for a request
	bubble   atomic.Value // the name of the bubble of the open scenario
}

func newHost(e Engine, in io.Reader, out io.Writer) *host {
	return &host{
		engine: e.withDefaults(), in: bufio.NewReaderSize(in, 1<<16), out: bufio.NewWriterSize(out, 1<<16),
	}
}

// serve answers requests until the input ends.
func (h *host) serve(t *testing.T) error {
	tune()
	go h.watch()
	err := h.answer(map[string]any{"hello": map[string]any{
		"protocol": Protocol, "engine": h.engine.Name, "release": h.engine.Release,
		"supports": []string{"disturbances", "objects"},
	}})
	for err == nil {
		var q *request
		if q, err = h.read(); err != nil {
			break
		}
		if q.Open == nil {
			err = h.failed(fmt.Errorf("no scenario is open"))
			continue
		}
		err = inBubble(t, func() error { return h.scenario(q.Open) })
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// tune suits the process to one controller that is stepped, and removes some randomness.
func tune() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	recordErrors()
	// Then rand.Seed has an effect.
	_ = os.Setenv("GODEBUG", os.Getenv("GODEBUG")+",randseednop=0")
}

// read reads a request, or io.EOF. A line that is none is an error: the other end does not speak the
// protocol.
func (h *host) read() (*request, error) {
	h.reading.Store(true)
	line, err := h.in.ReadBytes('\n')
	h.reading.Store(false)
	if len(bytes.TrimSpace(line)) == 0 {
		if err == nil {
			err = io.EOF
		}
		return nil, err
	}
	q := &request{}
	if err := json.Unmarshal(line, q); err != nil {
		return nil, fmt.Errorf("a request could not be read: %w", err)
	}
	return q, nil
}

// scenario serves a scenario from open to close, or to the end of the input.
func (h *host) scenario(open *openRequest) error {
	h.bubble.Store(ownBubble())
	s, err := openSession(h.engine, open)
	if err != nil {
		return h.failed(fmt.Errorf("scenario %s: %w", open.Scenario, err))
	}
	epoch := s.observed.epoch.UTC().Format(time.RFC3339)
	err = h.answer(map[string]any{"opened": map[string]any{"epoch": epoch}})
	for err == nil {
		var q *request
		if q, err = h.read(); err != nil || q.Close != nil {
			break
		}
		if q.Step == nil {
			err = h.failed(fmt.Errorf("a scenario is open already"))
			continue
		}
		stepped, stepErr := s.step(q.Step)
		if stepErr != nil {
			err = h.failed(stepErr)
		} else {
			err = h.answer(map[string]any{"stepped": stepped})
		}
	}
	s.close()
	if err != nil {
		return err
	}
	return h.answer(map[string]any{"closed": s.disturber.closed()})
}

func (h *host) failed(why error) error {
	failed := map[string]any{"why": why.Error()}
	if errors.As(why, new(unsupported)) {
		failed["unsupported"] = true
	}
	return h.answer(map[string]any{"failed": failed})
}

// unsupported is why a scenario can't run with the SDK, or with this controller. It is then skipped.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// answer writes an answer. It may remain in the buffer while another request is pending.
func (h *host) answer(a any) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered.Add(1)
	if _, err := h.out.Write(append(text, '\n')); err != nil {
		return err
	}
	if waiting, _ := h.in.Peek(h.in.Buffered()); bytes.IndexByte(waiting, '\n') >= 0 {
		return nil
	}
	return h.out.Flush()
}

// watch reports a step that takes too long, and exits: the goroutine of the bubble can't answer.
func (h *host) watch() {
	last, since := int64(-1), time.Now()
	for {
		time.Sleep(h.engine.Patience / 20)
		if answered := h.answered.Load(); answered != last || h.reading.Load() {
			last, since = answered, time.Now()
			continue
		}
		if time.Since(since) < h.engine.Patience {
			continue
		}
		bubble, _ := h.bubble.Load().(string)
		why := diagnose(bubble, h.engine.Patience)
		fmt.Fprintln(os.Stderr, why)
		_ = h.failed(fmt.Errorf("%s", why))
		h.mu.Lock()
		_ = h.out.Flush()
		os.Exit(1)
	}
}
