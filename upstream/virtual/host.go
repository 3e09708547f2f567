package virtual

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// host reads requests and writes answers.
type host struct {
	lines    chan []byte
	ended    atomic.Bool  // the input
	answered atomic.Int64 // how many requests
	out      *bufio.Writer
	buf      []byte
	session  *session
}

// patience is how long, once the input has ended, the host works at an answer that nobody awaits.
const patience = 5 * time.Second

// Host serves the protocol until the input ends.
func Host(t *testing.T, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(400)
	hearErrors()
	h := &host{lines: make(chan []byte, 256), out: bufio.NewWriterSize(out, 1<<16)}
	go h.read(in)
	h.buf = appendHello(h.buf[:0], release())
	if err := h.flush(); err != nil {
		return err
	}
	for line := range h.lines {
		if err := h.scenario(t, line); err != nil {
			return err
		}
	}
	return nil
}

// read hands the input over line by line, from outside of any bubble. When it ends, what has been
// asked before is still answered, unless that takes too long: the bubble may hang or spin.
func (h *host) read(in io.Reader) {
	input := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			h.lines <- line
		}
		if err != nil {
			break
		}
	}
	h.ended.Store(true)
	close(h.lines)
	for before := int64(-1); before != h.answered.Load(); {
		before = h.answered.Load()
		time.Sleep(patience)
	}
	os.Exit(1)
}

// scenario serves one scenario in one bubble. line should open it.
func (h *host) scenario(t *testing.T, line []byte) (err error) {
	q, err := parseRequest(line)
	if err != nil {
		return h.failed(err)
	}
	if q.open == nil {
		return h.failed(fmt.Errorf("no scenario is open"))
	}
	defer func() {
		if p := recover(); p != nil {
			_ = h.failed(fmt.Errorf("scenario %s: %v", q.open.scenario, p))
			err = fmt.Errorf("%v", p)
		}
	}()
	closed := false
	synctest.Test(t, func(*testing.T) {
		closed, err = h.bubble(q.open)
	})
	if err == nil && closed {
		h.buf = appendClosed(h.buf[:0])
		err = h.answer()
	}
	return err
}

// bubble serves a scenario from open to close, or to the end of the input.
func (h *host) bubble(open *openRequest) (closed bool, err error) {
	s, err := openSession(open)
	if err != nil {
		return false, h.failed(err)
	}
	defer s.close()
	h.buf = appendOpened(h.buf[:0], s.observed.epoch)
	if err := h.answer(); err != nil {
		return false, err
	}
	for line := range h.lines {
		q, err := parseRequest(line)
		switch {
		case err != nil:
		case q.close:
			return true, nil
		case q.step == nil:
			err = fmt.Errorf("a scenario is open already")
		default:
			err = h.step(s, q.step)
		}
		if err == nil {
			err = h.answer()
		} else {
			err = h.failed(err)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (h *host) step(s *session, q *stepRequest) error {
	api, log, err := s.step(q)
	if err != nil {
		return err
	}
	h.buf, err = appendStepped(h.buf[:0], s.now(), api, log)
	return err
}

func (h *host) failed(why error) error {
	h.buf = appendFailed(h.buf[:0], why.Error())
	return h.answer()
}

// answer writes one answer. While more requests wait, it need not leave the buffer.
func (h *host) answer() error {
	if len(h.lines) == 0 || h.ended.Load() {
		return h.flush()
	}
	h.answered.Add(1)
	_, err := h.out.Write(h.buf)
	return err
}

func (h *host) flush() error {
	h.answered.Add(1)
	if _, err := h.out.Write(h.buf); err != nil {
		return err
	}
	return h.out.Flush()
}
