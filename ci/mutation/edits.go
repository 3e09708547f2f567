package main

import (
	"bytes"
	"sort"
)

// edits are insertions into a file and replacements of tokens, by offset. Line breaks are neither
// added nor removed, so that lines keep their numbers.
type edits struct {
	before   map[int]string // inserted at the start of a node; of an outer node first
	after    map[int]string // inserted at the end of a node; of an inner node first
	replaced map[int]replacement
}

type replacement struct {
	length int
	by     string
}

func newEdits() *edits {
	return &edits{map[int]string{}, map[int]string{}, map[int]replacement{}}
}

// wrap inserts texts around a node. Outer nodes are wrapped before the nodes in them.
func (e *edits) wrap(start, end int, before, after string) {
	e.before[start] += before
	e.after[end] = after + e.after[end]
}

func (e *edits) replace(start, length int, by string) {
	e.replaced[start] = replacement{length, by}
}

// apply returns the changed text.
func (e *edits) apply(text []byte) []byte {
	at := map[int]bool{}
	for offset := range e.before {
		at[offset] = true
	}
	for offset := range e.after {
		at[offset] = true
	}
	for offset := range e.replaced {
		at[offset] = true
	}
	var offsets []int
	for offset := range at {
		offsets = append(offsets, offset)
	}
	sort.Ints(offsets)
	var out bytes.Buffer
	last := 0
	for _, offset := range offsets {
		out.Write(text[last:offset])
		last = offset
		out.WriteString(e.after[offset])
		out.WriteString(e.before[offset])
		if replaced, ok := e.replaced[offset]; ok {
			out.WriteString(replaced.by)
			last += replaced.length
		}
	}
	out.Write(text[last:])
	return out.Bytes()
}
