package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Verdicts on a mutant.
const (
	killed    = "killed"    // a fixture noticed it
	fuzzed    = "fuzzed"    // only a generated scenario noticed it
	survived  = "survived"  // nothing noticed it
	unreached = "unreached" // no fixture runs its code
)

// result is the verdict on a mutant.
type result struct {
	Key     string  `json:"key"`
	Verdict string  `json:"verdict"`
	How     string  `json:"how,omitempty"` // diverges, fails or hangs
	By      string  `json:"by,omitempty"`  // the fixture
	Ticks   int     `json:"ticks,omitempty"`
	Seconds float64 `json:"seconds"`
}

// results are the verdicts of a run by the keys of mutants. They are appended to a file, so that the
// run can continue.
func (o *options) results() (map[string]result, error) {
	found := map[string]result{}
	file, err := os.Open(o.path(resultsFile))
	if os.IsNotExist(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one result
		// The last line of a run that was killed may be incomplete.
		if json.Unmarshal(lines.Bytes(), &one) == nil {
			found[one.Key] = one
		}
	}
	return found, nil
}

// runner runs mutants, and orders fixtures by their success.
type runner struct {
	*options
	fixtures *fixtures
	file     *os.File
	mutex    sync.Mutex
	// The time of the last kill of a fixture, as a number of kills: in a function, and overall.
	last  map[string]int
	kills int
	done  int
	total int
	begun time.Time
}

// first is the number of fixtures that are run first, in a batch of their own.
const first = 6

func (o *options) runAll(g *generated) error {
	f, err := o.measure(g)
	if err != nil {
		return err
	}
	before, err := o.results()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(o.path(resultsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	var due []*mutant
	for _, m := range g.Mutants {
		known, ran := before[m.Key()]
		switch {
		case m.ID%o.every != 0 || !strings.Contains(m.Key(), o.only):
		case !ran, o.again && known.Verdict != killed, known.Verdict == survived && known.Ticks < o.ticks:
			due = append(due, m)
		}
	}
	// A run that is stopped has run a random sample.
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	r := &runner{
		options: o, fixtures: f, file: file, last: map[string]int{},
		total: len(due), begun: time.Now(),
	}
	for _, m := range g.Mutants {
		if by := before[m.Key()].By; by != "" {
			r.remember(m, by)
		}
	}
	return each(o.jobs, due, func(m *mutant) error { return r.run(m, before[m.Key()]) })
}

// run finds the verdict on a mutant and writes it down. Only the fuzzer runs if the fixtures did.
func (r *runner) run(m *mutant, before result) error {
	begun := time.Now()
	one := result{Key: m.Key(), Verdict: unreached}
	if reaching := r.order(m); len(reaching) > 0 {
		one.Verdict = survived
		cut := min(first, len(reaching))
		for _, batch := range [][]string{reaching[:cut], reaching[cut:]} {
			if len(batch) == 0 || one.Verdict != survived || before.Verdict == survived && !r.again {
				continue
			}
			_, err := r.play(m.ID, batch, "", func(played outcome) bool {
				if how := played.kills(); how != "" {
					one.Verdict, one.How, one.By = killed, how, played.ID
				}
				return one.Verdict == killed
			})
			if err != nil {
				return fmt.Errorf("mutant %d: %w", m.ID, err)
			}
		}
	}
	if one.Verdict == survived && r.ticks > 0 {
		how, err := r.fuzz(m.ID)
		if err != nil {
			return fmt.Errorf("mutant %d: %w", m.ID, err)
		}
		one.Ticks = r.ticks
		if how != "" {
			one.Verdict, one.How = fuzzed, how
		}
	}
	one.Seconds = time.Since(begun).Seconds()
	return r.write(m, one)
}

func (r *runner) write(m *mutant, one result) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.remember(m, one.By)
	r.done++
	if r.done%20 == 0 || r.done == r.total {
		fmt.Fprintf(os.Stderr, "%d of %d mutants, %.0f s\n", r.done, r.total, time.Since(r.begun).Seconds())
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// remember notes that a fixture killed a mutant.
func (r *runner) remember(m *mutant, by string) {
	if by != "" {
		r.kills++
		r.last[by] = r.kills
		r.last[m.Function+" "+by] = r.kills
	}
}

// order returns the fixtures that reach a mutant: those that lately killed another mutant of its
// function first, then those that lately killed any.
func (r *runner) order(m *mutant) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	reaching := slices.Clone(r.fixtures.of[m.ID])
	slices.SortStableFunc(reaching, func(a, b string) int {
		if here := r.last[m.Function+" "+b] - r.last[m.Function+" "+a]; here != 0 {
			return here
		}
		return r.last[b] - r.last[a]
	})
	return reaching
}
