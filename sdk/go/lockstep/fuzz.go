package lockstep

import (
	"cmp"
	"fmt"
	"testing"
)

// FuzzOptions are the options of [Fuzz].
type FuzzOptions struct {
	// Expect is the file of a scenario. All generated scenarios have its expectations and its objects,
	// so the expectations must hold at any time: always: {}, never: {} and atMost.
	Expect string
	// Ticks is the number of reconciles after which the search ends. The default is 10000.
	Ticks int
	// Seed is the seed of the scenarios. The default is 1.
	Seed uint64
	// Areas restrict the scenarios, as the option --area of kube-lockstep fuzz does.
	Areas []string
	// Save is the folder in which failing scenarios are saved. The default is testdata/fuzz-found.
	Save string
}

// fuzzed is a line of the output of kube-lockstep fuzz.
type fuzzed struct {
	Found *struct {
		Kind, File string
		Failure    struct {
			Unmet        []Unmet
			Inconclusive string
		}
	}
	Summary *struct {
		Scenarios, Ticks int
		Skipped          map[string]int
	}
}

func (f fuzzed) isResult() bool { return f.Found != nil || f.Summary != nil }

// Fuzz runs scenarios of HPAs that are generated from a seed, with the expectations of a scenario. It
// fails the test for each kind of failure, and saves a smallest scenario with it.
func Fuzz(t *testing.T, e Engine, o FuzzOptions) {
	t.Helper()
	for _, line := range fuzz(t, e, o) {
		switch {
		case line.Summary != nil && line.Summary.Ticks == 0:
			t.Errorf("no scenario ran: %v", line.Summary.Skipped)
		case line.Summary != nil:
			t.Logf("%d scenarios, %d ticks; skipped: %v",
				line.Summary.Scenarios, line.Summary.Ticks, line.Summary.Skipped)
		default:
			for _, unmet := range line.Found.Failure.Unmet {
				t.Errorf("%s: %s", line.Found.File, unmet.What)
			}
			if why := line.Found.Failure.Inconclusive; why != "" {
				t.Errorf("%s: no verdict: %s", line.Found.File, why)
			}
		}
	}
}

func fuzz(t *testing.T, e Engine, o FuzzOptions) []fuzzed {
	t.Helper()
	args := []string{
		"fuzz", "--expect", o.Expect, "--ticks", fmt.Sprint(cmp.Or(o.Ticks, 10000)),
		"--seed", fmt.Sprint(cmp.Or(o.Seed, 1)), "--save", cmp.Or(o.Save, "testdata/fuzz-found"),
	}
	for _, area := range o.Areas {
		args = append(args, "--area", area)
	}
	return results[fuzzed](t, e, args, nil)
}
