package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Classes of survivors.
const (
	equivalent  = "equivalent"  // the controller does the same
	unreachable = "unreachable" // the API server or the host prevents what would show it
	logged      = "logged"      // only the log differs, or a value that is only logged
	unobserved  = "unobserved"  // an effect that the harness does not compare
	gap         = "gap"         // a fixture could show it
)

// reason explains a group of survivors.
type reason struct {
	Class  string `yaml:"class"`
	Reason string `yaml:"reason"`
	// The keys of mutants. An asterisk stands for any text, a question mark for one character.
	Mutants []string `yaml:"mutants"`

	patterns []*regexp.Regexp
}

// readReasons reads ci/mutants.yaml.
func readReasons(path string) ([]*reason, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var reasons []*reason
	if err := yaml.Unmarshal(text, &reasons); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range reasons {
		switch r.Class {
		case equivalent, unreachable, logged, unobserved, gap:
		default:
			return nil, fmt.Errorf("%s: unknown class %q", path, r.Class)
		}
		for _, key := range r.Mutants {
			text := strings.ReplaceAll(regexp.QuoteMeta(key), `\*`, ".*")
			text = strings.ReplaceAll(text, `\?`, ".")
			pattern, err := regexp.Compile("^" + text + "$")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			r.patterns = append(r.patterns, pattern)
		}
	}
	return reasons, nil
}

// reasonOf returns the first reason that names a mutant, and marks what it used of it.
func reasonOf(reasons []*reason, key string, used map[string]bool) *reason {
	for _, r := range reasons {
		for i, pattern := range r.patterns {
			if pattern.MatchString(key) {
				used[r.Mutants[i]] = true
				return r
			}
		}
	}
	return nil
}
