package main

import (
	"errors"
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
	Class   string       `yaml:"class"`
	Reason  string       `yaml:"reason"`
	Mutants []*survivors `yaml:"mutants"`
	// Outdated is true if the reason no longer holds: the survivors of the next run need another one.
	Outdated bool `yaml:"outdated"`
}

// survivors are the mutants with a key, and how many of them survive. An asterisk in the key stands
// for any text, a question mark for one character.
type survivors struct {
	key      string
	expected int

	pattern *regexp.Regexp
}

// UnmarshalYAML reads a key, which stands for one survivor, or `key: NUMBER`.
func (s *survivors) UnmarshalYAML(node *yaml.Node) error {
	s.expected = 1
	key := node
	if node.Kind == yaml.MappingNode && len(node.Content) == 2 {
		key = node.Content[0]
		if err := node.Content[1].Decode(&s.expected); err != nil {
			return err
		}
		if s.expected < 2 {
			return fmt.Errorf("line %d: a number is at least 2; a key alone stands for 1", node.Line)
		}
	}
	if err := key.Decode(&s.key); err != nil {
		return err
	}
	text := strings.ReplaceAll(regexp.QuoteMeta(s.key), `\*`, ".*")
	text = strings.ReplaceAll(text, `\?`, ".")
	var err error
	s.pattern, err = regexp.Compile("^" + text + "$")
	return err
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
	}
	return reasons, nil
}

// reasonOf returns the first reason that names a mutant, and counts the survivor.
func reasonOf(reasons []*reason, key string, found map[*survivors]int) *reason {
	for _, r := range reasons {
		for _, s := range r.Mutants {
			if s.pattern.MatchString(key) {
				found[s]++
				return r
			}
		}
	}
	return nil
}

// wrongNumbers returns an error that names the keys whose number of survivors is not the stated one.
// A new survivor that matches a general key may need a reason of its own.
func wrongNumbers(reasons []*reason, found map[*survivors]int) error {
	var wrong []error
	for _, r := range reasons {
		for _, s := range r.Mutants {
			if found[s] != s.expected {
				wrong = append(wrong, fmt.Errorf("ci/mutants.yaml: key %s: expected %d, found %d survivors",
					s.key, s.expected, found[s]))
			}
		}
	}
	return errors.Join(wrong...)
}

// outdated returns an error that names the reasons that no longer hold.
func outdated(reasons []*reason) error {
	var all []error
	for _, r := range reasons {
		if r.Outdated {
			all = append(all, fmt.Errorf("ci/mutants.yaml: find new reasons for the survivors "+
				"with the outdated reason: %s", strings.TrimSpace(r.Reason)))
		}
	}
	return errors.Join(all...)
}
