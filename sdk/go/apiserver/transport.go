package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Config returns a configuration for clients in this process. The name identifies them in
// [Request.Controller]. Rate limits are off, because they would take time.
func (s *Server) Config(controller string) *rest.Config {
	c := &rest.Config{
		Host: "http://apiserver.invalid", Transport: &transport{s, controller}, QPS: -1,
		UserAgent: controller,
	}
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	return c
}

type controllerKey struct{}

func controllerOf(ctx context.Context) string {
	name, _ := ctx.Value(controllerKey{}).(string)
	return name
}

// transport calls the server on the goroutine of the client, and on a goroutine of its own for a
// watch.
type transport struct {
	server     http.Handler
	controller string
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), controllerKey{}, t.controller))
	answer := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
	}
	if watch := r.URL.Query().Get("watch"); watch != "true" && watch != "1" {
		defer cancel()
		w := &buffer{response: answer}
		t.server.ServeHTTP(w, r.WithContext(ctx))
		answer.Body = io.NopCloser(bytes.NewReader(w.body))
		answer.ContentLength = int64(len(w.body))
		return answer, nil
	}
	w := &stream{
		response: answer, ctx: ctx, cancel: cancel, ready: make(chan struct{}),
		wake: make(chan struct{}, 1),
	}
	answer.Body, answer.ContentLength = w, -1
	go func() {
		t.server.ServeHTTP(w, r.WithContext(ctx))
		w.end()
	}()
	select {
	case <-w.ready:
		return answer, nil
	case <-ctx.Done():
		cancel()
		return nil, r.Context().Err()
	}
}

// buffer is the writer of a complete answer.
type buffer struct {
	response *http.Response
	body     []byte
}

func (w *buffer) Header() http.Header { return w.response.Header }

func (w *buffer) WriteHeader(code int) {
	w.response.StatusCode, w.response.Status = code, http.StatusText(code)
}

func (w *buffer) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

// stream is the writer of an answer without an end, and its body. Writes do not wait for the reader.
type stream struct {
	response *http.Response
	ctx      context.Context
	cancel   context.CancelFunc
	ready    chan struct{} // closed when the header is written
	wake     chan struct{}
	once     sync.Once
	mu       sync.Mutex
	pending  []byte
	ended    bool
}

func (w *stream) Header() http.Header { return w.response.Header }

func (w *stream) WriteHeader(code int) {
	w.response.StatusCode, w.response.Status = code, http.StatusText(code)
}

func (w *stream) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.pending = append(w.pending, p...)
	w.mu.Unlock()
	w.Flush()
	return len(p), nil
}

// Flush wakes the reader.
func (w *stream) Flush() {
	w.once.Do(func() { close(w.ready) })
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *stream) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.Flush()
}

// Read waits for the next part of the answer.
func (w *stream) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		ended := w.ended
		w.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

// Close ends the request.
func (w *stream) Close() error {
	w.cancel()
	return nil
}
