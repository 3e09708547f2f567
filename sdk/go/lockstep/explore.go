package lockstep

import (
	"fmt"
	"strings"
	"testing"
)

// ExploreOptions are the options of [Explore]. Without any, it makes 200 runs of each scenario with
// the seed 1.
type ExploreOptions struct {
	// Runs is the number of disturbed runs of each scenario.
	Runs int
	// Seed is the seed of the disturbances.
	Seed uint64
	// Only are the kinds of disturbances: "hold" for events of watches that are late, "answer" for
	// writes that fail, and "crash". The default is all of them.
	Only []string
	// Disturb are the disturbances of the only disturbed run, as texts like "hold event 3 of
	// deployments.apps for 2ms". A finding has them.
	Disturb []string
}

// Explored is the result of a scenario with disturbances.
type Explored struct {
	// Outcome is that of the run without disturbances.
	Outcome
	// Runs is the number of disturbed runs, of which Failed ones failed.
	Runs, Failed int
	// Unrepeated failures did not occur again with the same disturbances, or also occurred without them.
	Unrepeated int
	// IsConclusive is false if nothing could be disturbed, a given disturbance did not happen, or a
	// failure is unrepeated.
	IsConclusive bool
	// Missing are the given disturbances that did not happen, in sentences.
	Missing  []string
	Findings []Finding
}

// Finding is a smallest set of disturbances with which a controller fails.
type Finding struct {
	Disturbances []Disturbance
	// Outcome is that of the run with the disturbances.
	Outcome Outcome
}

// Disturbance is an event of a watch that is late, a write that fails, or a crash.
type Disturbance struct {
	// Text is the disturbance as [ExploreOptions.Disturb] has it.
	Text string
	// Sentence describes it.
	Sentence string
}

// String describes the finding: the disturbances, and what they cause.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString("it conforms without disturbances, and fails with:")
	for _, d := range f.Disturbances {
		fmt.Fprintf(&b, "\n  - %s", d.Sentence)
	}
	for _, unmet := range f.Outcome.Unmet {
		fmt.Fprintf(&b, "\n  %s:%d: %s", unmet.File, unmet.Line, unmet.What)
	}
	if f.Outcome.Why != "" {
		fmt.Fprintf(&b, "\n  %s", f.Outcome.Why)
	}
	var texts []string
	for _, d := range f.Disturbances {
		texts = append(texts, fmt.Sprintf("%q", d.Text))
	}
	fmt.Fprintf(&b, "\n  replay: ExploreOptions{Disturb: []string{%s}}", strings.Join(texts, ", "))
	return b.String()
}

// Explore runs scenarios like [Test], each without disturbances first and then many times with
// disturbances from a seed: events of watches that are delivered late, writes that are answered with
// an error, and crashes right before or after a write. A subtest fails if an expectation of its
// scenario is not met in some run, with a smallest set of disturbances that causes it.
func Explore(t *testing.T, e Engine, scenarios []string, o ExploreOptions) {
	t.Helper()
	for _, explored := range Explorations(t, e, scenarios, o) {
		t.Run(explored.ID, func(t *testing.T) {
			explored.report(t)
			switch conforms := explored.Verdict == "conforms"; {
			case explored.Unrepeated > 0:
				t.Errorf("%s:%d: a run failed, and not each time with the same disturbances, or also "+
					"without them: the controller is not deterministic", explored.Path, explored.Line)
			case len(explored.Missing) > 0:
				t.Errorf("%s:%d: %s", explored.Path, explored.Line, strings.Join(explored.Missing, "; "))
			case conforms && !explored.IsConclusive:
				t.Errorf("%s:%d: nothing could be disturbed", explored.Path, explored.Line)
			}
			for _, f := range explored.Findings {
				t.Errorf("%s:%d: %s", explored.Path, explored.Line, f)
			}
		})
	}
}

// Explorations runs scenarios like [Explore], and returns the results.
func Explorations(
	t *testing.T,
	e Engine,
	scenarios []string,
	o ExploreOptions,
) []Explored {
	t.Helper()
	args := []string{"explore"}
	if o.Runs > 0 {
		args = append(args, "--runs", fmt.Sprint(o.Runs))
	}
	if o.Seed > 0 {
		args = append(args, "--seed", fmt.Sprint(o.Seed))
	}
	for _, kind := range o.Only {
		args = append(args, "--only", kind)
	}
	for _, text := range o.Disturb {
		args = append(args, "--disturb", text)
	}
	return results[Explored](t, e, args, scenarios)
}
