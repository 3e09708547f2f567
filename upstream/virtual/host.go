package virtual

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// host reads requests and writes answers. It reads on the goroutine of the bubble: synctest does
// not count a blocking read as durably blocked, so the clock stands still meanwhile.
type host struct {
	in       *bufio.Reader
	long     []byte // a line that is longer than the buffer
	buf      []byte
	answered atomic.Int64 // how many requests
	outMu    sync.Mutex
	out      *bufio.Writer
}

// answerBatch is the number of bytes of finished answers that are written although more requests are
// pending, so that the other end reads them meanwhile.
const answerBatch = 1 << 13

func newHost(in io.Reader, out io.Writer) *host {
	return &host{in: bufio.NewReaderSize(in, 1<<16), out: bufio.NewWriterSize(out, answerBatch)}
}

// Host serves the protocol until the input ends.
func Host(t *testing.T, in *os.File, out io.Writer) error {
	recordErrors()
	quiet()
	h := newHost(in, out)
	go h.watch(in)
	h.buf = appendHello(h.buf[:0], release())
	if err := h.answer(); err != nil {
		return err
	}
	for {
		line, err := h.line()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = h.scenario(t, line)
		}
		if err != nil {
			return err
		}
	}
}

// ballast counts as part of the heap, but uses no memory, because nothing writes to it.
var ballast []byte

// tune configures the runtime for one stepped controller: its goroutines constantly wake each
// other, which costs more across threads, and nearly all its allocations are short-lived. The
// ballast makes collections less frequent while the heap is small, as in most scenarios: four times
// its size is allocated between two collections.
func tune() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	ballast = make([]byte, 8<<20)
}

// line returns the next line of the input. It is valid until the next call.
func (h *host) line() ([]byte, error) {
	line, err := h.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		if len(line) > 0 {
			err = nil
		}
		return line, err
	}
	h.long = h.long[:0]
	for err == bufio.ErrBufferFull {
		h.long = append(h.long, line...)
		line, err = h.in.ReadSlice('\n')
	}
	h.long = append(h.long, line...)
	if err == io.EOF {
		err = nil
	}
	return h.long, err
}

// watch handles answers that take long, because the bubble may hang or spin. It flushes finished
// answers, and ends the program if the other end is closed. If no answer takes long, all requests
// before the end of the input are answered.
func (h *host) watch(in *os.File) {
	for before := int64(-1); ; time.Sleep(time.Second) {
		answered := h.answered.Load()
		if answered == before {
			h.outMu.Lock()
			err := h.out.Flush()
			h.outMu.Unlock()
			if err != nil || hungUp(in) {
				fmt.Fprintln(os.Stderr, "the input has ended, and an answer is long in coming")
				os.Exit(1)
			}
		}
		before = answered
	}
}

// hungUp reports whether the other end of a pipe is closed, even if unread input is left.
func hungUp(in *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(in.Fd()), Events: 0}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&unix.POLLHUP != 0
}

// scenario serves one scenario in its own bubble. line should open it.
func (h *host) scenario(t *testing.T, line []byte) (err error) {
	q, err := parseRequest(line)
	if err != nil {
		return h.failed(err)
	}
	if q.open == nil {
		return h.failed(fmt.Errorf("no scenario is open"))
	}
	closed, ended := false, false
	defer func() {
		// Goroutines that remain afterwards stay in their own bubble.
		if p := recover(); p != nil && (!ended || !leavesGoroutines) {
			_ = h.failed(fmt.Errorf("scenario %s: %v", q.open.scenario, p))
			err = fmt.Errorf("%v", p)
		}
		if err == nil && closed {
			h.buf = appendClosed(h.buf[:0])
			err = h.answer()
		}
	}()
	synctest.Test(t, func(*testing.T) {
		closed, err = h.bubble(q.open)
		ended = true
	})
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
	for {
		var q request
		line, err := h.line()
		if err == io.EOF {
			return false, nil
		}
		if err == nil {
			q, err = parseRequest(line)
		}
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

// answer writes one answer, which may remain in the buffer while another request is pending.
func (h *host) answer() error {
	h.answered.Add(1)
	h.outMu.Lock()
	defer h.outMu.Unlock()
	if _, err := h.out.Write(h.buf); err != nil {
		return err
	}
	waiting, _ := h.in.Peek(h.in.Buffered())
	if bytes.IndexByte(waiting, '\n') >= 0 {
		return nil
	}
	return h.out.Flush()
}
