package main

import (
	"fmt"
	"strings"
)

// kind is a class of changes.
type kind string

const (
	relational   kind = "relational operator"
	logical      kind = "logical operator"
	arithmetic   kind = "arithmetic operator"
	kindConstant kind = "constant"
	kindText     kind = "text"
	apiName      kind = "API constant"
	condition    kind = "forced condition"
	deletion     kind = "deleted statement"
	zeroed       kind = "zeroed value"
	variable     kind = "another variable"
	field        kind = "another field"
)

// mutant is one change of the source.
type mutant struct {
	// ID is the value of the environment variable that selects the mutant.
	ID       int    `json:"id"`
	File     string `json:"file"` // in the source tree of upstream
	Line     int    `json:"line"`
	Function string `json:"function"`
	Kind     kind   `json:"kind"`
	// Change is the shortened text before and after, with a number if the function has several
	// equal changes.
	Change string `json:"change"`
}

// Key identifies a mutant across runs and across edits elsewhere in the file.
func (m *mutant) Key() string { return m.Function + ": " + m.Change }

// longest is the number of characters of a source text that a change shows.
const longest = 48

// shorten returns a source text on one line, without its middle if it is long.
func shorten(source string) string {
	runes := []rune(strings.Join(strings.Fields(source), " "))
	if len(runes) <= longest {
		return string(runes)
	}
	half := longest/2 - 1
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}

// mutants numbers the mutants of all packages.
type mutants struct {
	all  []*mutant
	seen map[string]int // the number of mutants with a key
}

// add returns the number of a new mutant.
func (ms *mutants) add(m mutant) int {
	m.ID = len(ms.all) + 1
	ms.seen[m.Key()]++
	if n := ms.seen[m.Key()]; n > 1 {
		m.Change += fmt.Sprintf(" (%d)", n)
	}
	ms.all = append(ms.all, &m)
	return m.ID
}
