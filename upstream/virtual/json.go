package virtual

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// reader parses one JSON text without reflection, because each reconcile has a request. The first
// error is kept in err, and all later calls do nothing.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s at byte %d", what, r.pos)
	}
	r.pos = len(r.data)
}

// peek returns the next byte that is not a space, or 0.
func (r *reader) peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *reader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.pos++
	return true
}

func (r *reader) expect(c byte) {
	if !r.take(c) {
		r.fail("expected " + strconv.QuoteRune(rune(c)))
	}
}

// end checks that nothing follows.
func (r *reader) end() error {
	if r.err == nil && r.peek() != 0 {
		r.fail("unexpected text")
	}
	return r.err
}

// object calls member for each member, which must read its value.
func (r *reader) object(member func(key string)) {
	r.expect('{')
	if r.take('}') {
		return
	}
	for r.err == nil {
		key := r.str()
		r.expect(':')
		if r.err == nil {
			member(key)
		}
		if !r.take(',') {
			r.expect('}')
			return
		}
	}
}

// array calls element for each element, which must read it.
func (r *reader) array(element func()) {
	r.expect('[')
	if r.take(']') {
		return
	}
	for r.err == nil {
		element()
		if !r.take(',') {
			r.expect(']')
			return
		}
	}
}

// stringBytes returns a string with its quotes, and whether it has escapes.
func (r *reader) stringBytes() (text []byte, escapes bool) {
	r.expect('"')
	start := r.pos - 1
	for r.err == nil && r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case '\\':
			escapes = true
			r.pos += 2
		case '"':
			r.pos++
			return r.data[start:r.pos], escapes
		default:
			r.pos++
		}
	}
	r.fail("a string without an end")
	return nil, false
}

func (r *reader) str() string {
	text, escapes := r.stringBytes()
	if r.err != nil {
		return ""
	}
	if !escapes {
		return string(text[1 : len(text)-1])
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		r.fail(err.Error())
	}
	return s
}

// literal returns a number, true, false or null.
func (r *reader) literal() []byte {
	r.peek()
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			r.pos++
			continue
		}
		break
	}
	if start == r.pos {
		r.fail("expected a value")
	}
	return r.data[start:r.pos]
}

func (r *reader) int64() int64 {
	n, err := strconv.ParseInt(string(r.literal()), 10, 64)
	if err != nil && r.err == nil {
		r.fail("expected an integer")
	}
	return n
}

func (r *reader) int32() int32 {
	n, err := strconv.ParseInt(string(r.literal()), 10, 32)
	if err != nil && r.err == nil {
		r.fail("expected an integer of 32 bits")
	}
	return int32(n)
}

func (r *reader) float() float64 {
	n, err := strconv.ParseFloat(string(r.literal()), 64)
	if err != nil && r.err == nil {
		r.fail("expected a number")
	}
	return n
}

func (r *reader) bool() bool {
	switch string(r.literal()) {
	case "true":
		return true
	case "false":
	default:
		r.fail("expected true or false")
	}
	return false
}

// raw returns any value as it is written.
func (r *reader) raw() json.RawMessage {
	r.peek()
	start := r.pos
	r.skip()
	if r.err != nil {
		return nil
	}
	return json.RawMessage(r.data[start:r.pos])
}

func (r *reader) skip() {
	switch r.peek() {
	case '{':
		r.object(func(string) { r.skip() })
	case '[':
		r.array(r.skip)
	case '"':
		r.stringBytes()
	default:
		r.literal()
	}
}

func (r *reader) unknown(key string) {
	if r.err == nil {
		r.err = errors.New("unknown field " + strconv.Quote(key))
	}
	r.pos = len(r.data)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// appendField appends `"name":`, after a comma unless it is the first field of its object.
func appendField(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}
