package recommender

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// host reads requests and writes answers. It reads on the goroutine of the bubble: synctest does
// not count a blocking read as durably blocked, so the clock stands still meanwhile.
type host struct {
	in  *bufio.Reader
	out *bufio.Writer
}

// Host serves the protocol until the input ends.
func Host(t *testing.T, in io.Reader, out io.Writer) error {
	tune()
	h := &host{in: bufio.NewReaderSize(in, 1<<16), out: bufio.NewWriterSize(out, 1<<16)}
	hello := helloAnswer{Protocol: protocol, Engine: "recommender", Release: release()}
	if err := h.answer(&answer{Hello: &hello}); err != nil {
		return err
	}
	for {
		q, err := h.request()
		if err == io.EOF {
			return nil
		}
		if err == nil && q.Open == nil {
			err = fmt.Errorf("no scenario is open")
		}
		if err != nil {
			err = h.failed(err)
		} else {
			err = h.scenario(t, q.Open)
		}
		if err != nil {
			return err
		}
	}
}

// tune configures the runtime for one stepped recommender: its goroutines wait for each other.
func tune() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
}

// release is the version of the recommender, taken from the location of its source at compile time.
func release() string {
	pc := reflect.ValueOf(model.NewClusterState).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	if _, version, ok := strings.Cut(file, "vertical-pod-autoscaler@"); ok {
		version, _, _ = strings.Cut(version, "/")
		return version
	}
	return "local"
}

func (h *host) request() (q request, err error) {
	line, err := h.in.ReadBytes('\n')
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return q, fmt.Errorf("a request can't be parsed: %v", err)
	}
	return q, nil
}

// answer writes one answer, which may remain in the buffer while another request is pending.
func (h *host) answer(a *answer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err := h.out.Write(append(text, '\n')); err != nil {
		return err
	}
	if h.in.Buffered() > 0 {
		return nil
	}
	return h.out.Flush()
}

func (h *host) failed(why error) error {
	return h.answer(&answer{Failed: &failedAnswer{Why: why.Error()}})
}

// scenario serves one scenario in its own bubble.
func (h *host) scenario(t *testing.T, open *openRequest) (err error) {
	defer func() {
		if p := recover(); p != nil {
			_ = h.failed(fmt.Errorf("scenario %s: %v", open.Scenario, p))
			_ = h.out.Flush()
			err = fmt.Errorf("%v", p)
		}
	}()
	synctest.Test(t, func(*testing.T) { err = h.bubble(open) })
	return err
}

// bubble serves a scenario from `open` to `close`, or to the end of the input.
func (h *host) bubble(open *openRequest) error {
	s, err := openSession(open)
	if err != nil {
		return h.failed(err)
	}
	if err := h.answer(&answer{Opened: &openedAnswer{Log: s.log.take()}}); err != nil {
		return err
	}
	for {
		q, err := h.request()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			err = h.failed(err)
		case q.Close != nil:
			return h.answer(&answer{Closed: &struct{}{}})
		case q.Step == nil:
			err = h.failed(fmt.Errorf("a scenario is already open"))
		default:
			err = h.step(s, q.Step)
		}
		if err != nil {
			return err
		}
	}
}

func (h *host) step(s *session, q *stepRequest) error {
	stepped, err := s.step(q)
	if err != nil {
		return h.failed(err)
	}
	return h.answer(&answer{Stepped: stepped})
}
