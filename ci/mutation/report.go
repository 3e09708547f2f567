package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// survivor is a mutant that no fixture noticed.
type survivor struct {
	*mutant
	verdict string
	reason  *reason
}

// columns are the numbers of mutants of a kind.
type columns struct{ all, killed, fuzzed, equivalent, logged, unreachable, unobserved, gaps int }

func (c *columns) count(verdict string, why *reason) {
	c.all++
	switch {
	case verdict == killed:
		c.killed++
	case verdict == fuzzed:
		c.fuzzed++
	case why == nil:
		c.gaps++
	case why.Class == equivalent:
		c.equivalent++
	case why.Class == logged:
		c.logged++
	case why.Class == unreachable:
		c.unreachable++
	case why.Class == unobserved:
		c.unobserved++
	default:
		c.gaps++
	}
}

// killable is the number of mutants that a fixture could show.
func (c *columns) killable() int { return c.killed + c.fuzzed + c.gaps }

// percent is cut, not rounded: 100% means all.
func percent(part, whole int) string {
	return fmt.Sprintf("%.1f%%", math.Floor(1000*float64(part)/float64(max(whole, 1)))/10)
}

// report writes the results of a run as a page.
func (o *options) report(path string) error {
	text, err := os.ReadFile(o.path(mutantsFile))
	if err != nil {
		return err
	}
	var g generated
	if err := json.Unmarshal(text, &g); err != nil {
		return err
	}
	results, err := o.results()
	if err != nil {
		return err
	}
	reasons, err := readReasons(filepath.Join(o.repository, "ci/mutants.yaml"))
	if err != nil {
		return err
	}
	kinds, total := map[kind]*columns{}, &columns{}
	var survived []survivor
	found := map[*survivors]int{}
	fuzzedToo := 0
	for _, m := range g.Mutants {
		one, ran := results[m.Key()]
		if !ran {
			continue
		}
		var why *reason
		if one.Verdict != killed && one.Verdict != fuzzed {
			why = reasonOf(reasons, m.Key(), found)
		}
		if one.Verdict != killed {
			survived = append(survived, survivor{m, one.Verdict, why})
		}
		if one.Ticks > 0 {
			fuzzedToo++
		}
		if kinds[m.Kind] == nil {
			kinds[m.Kind] = &columns{}
		}
		kinds[m.Kind].count(one.Verdict, why)
		total.count(one.Verdict, why)
	}
	if total.all == len(g.Mutants) {
		if err := errors.Join(wrongNumbers(reasons, found), outdated(reasons)); err != nil {
			return err
		}
	}
	page := &bytes.Buffer{}
	writeSummary(page, &g, total, fuzzedToo)
	writeKinds(page, kinds, total)
	fmt.Fprint(page, method)
	writeSurvivors(page, survived, reasons)
	fmt.Fprintf(os.Stderr, "%d of %d killed by fixtures: %s; %d gaps\n",
		total.killed, total.killable(), percent(total.killed, total.killable()), total.gaps)
	return os.WriteFile(path, page.Bytes(), 0o666)
}

// fuzzing says how many survivors were fuzzed.
func fuzzing(total *columns, fuzzed int) string {
	if total.gaps+total.fuzzed == 0 {
		return "No gap was left for the fuzzer."
	}
	return fmt.Sprintf("The fuzzer ran on %d of the survivors.", fuzzed)
}

func writeSummary(page *bytes.Buffer, g *generated, total *columns, fuzzed int) {
	fmt.Fprintf(page, `# Mutation score

This page shows how many faults in upstream's HPA controller the fixtures find. `+"`ci/mutate`"+` changes the
source of the controller in one place at a time (a *mutant*), and runs the fixtures on each changed
controller. A mutant is *killed* if the model and the changed controller differ in a fixture, or if
the controller fails or hangs.

This page is generated from a run on Kubernetes %s: `+"`ci/mutate --report`"+`. [Run it yourself](#run-it-yourself).

| | mutants |
|---|---|
| created | %d |
| run | %d |
| of these, killable | %d |
| killed by fixtures | %d (%s of the killable mutants) |
| killed by fixtures or fuzzing | %d (%s) |

A mutant is killable unless it belongs to one of these classes of [survivors](#survivors): equivalent
mutants, mutants that affect only the log, mutants whose effect cannot occur because of the API server
or the host, and mutants whose effect the harness does not compare. Statements that only log (%d) are not mutated.
If the mutants whose effect the harness does not compare (%d) counted as killable, fixtures would kill
%s. %s

`,
		g.Release, len(g.Mutants), total.all, total.killable(),
		total.killed, percent(total.killed, total.killable()),
		total.killed+total.fuzzed, percent(total.killed+total.fuzzed, total.killable()),
		g.Logging, total.unobserved, percent(total.killed, total.killable()+total.unobserved),
		fuzzing(total, fuzzed))
}

const method = `## Run it yourself

` + "```sh" + `
ci/mutate --every 50       # a sample, in minutes
ci/mutate                  # all mutants
ci/mutate --again          # the survivors, after fixtures were added
ci/mutate --fuzz 50000     # fuzz the survivors
ci/mutate --report         # this page
` + "```" + `

It requires Go and Rust. One program contains all mutants, each behind a switch, and is built once. The
mutants come from the syntax trees and types of the packages ` + "`podautoscaler`, `podautoscaler/metrics`" + ` and
` + "`podautoscaler/monitor`" + `. First, each fixture runs alone on the unchanged controller, which shows the
mutants that it reaches. Then each mutant runs in the fixtures that reach it, until one of them differs;
fixtures that killed other mutants of the same function come first. Mutants that loop are stopped after
20 seconds; their memory is limited. The results are stored after each mutant, so a run that was stopped continues.

A mutant that was killed once counts as killed: to measure again after fixtures were changed or removed,
use a new folder (` + "`--folder`" + `).

`

func writeKinds(page *bytes.Buffer, kinds map[kind]*columns, total *columns) {
	fmt.Fprint(page, "## By kind\n\n"+
		"| kind | run | killed by fixtures | only by fuzzing | equivalent | only logged | "+
		"unreachable | not observed | gaps |\n|---|---|---|---|---|---|---|---|---|\n")
	row := func(name string, c *columns) {
		fmt.Fprintf(page, "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, c.all, c.killed,
			c.fuzzed, c.equivalent, c.logged, c.unreachable, c.unobserved, c.gaps)
	}
	for _, k := range []kind{
		relational, logical, arithmetic, kindConstant, kindText, apiName, condition, deletion,
		zeroed, variable, field,
	} {
		if kinds[k] != nil {
			row(string(k), kinds[k])
		}
	}
	row("all", total)
	fmt.Fprintln(page)
}

// titles are the headings of classes, in the order of the page.
var titles = []struct{ class, title string }{
	{gap, "Gaps"},
	{fuzzed, "Killed by fuzzing only"},
	{unobserved, "Not observed"},
	{unreachable, "Unreachable"},
	{logged, "Only logged"},
	{equivalent, "Equivalent"},
}

func writeSurvivors(page *bytes.Buffer, survived []survivor, reasons []*reason) {
	fmt.Fprintln(page, "## Survivors\n\nThe reasons are in `ci/mutants.yaml`.")
	for _, section := range titles {
		groups := map[*reason][]survivor{}
		for _, s := range survived {
			class := gap
			if s.verdict == fuzzed {
				class = fuzzed
			} else if s.reason != nil {
				class = s.reason.Class
			}
			if class == section.class {
				groups[s.reason] = append(groups[s.reason], s)
			}
		}
		if len(groups) == 0 {
			continue
		}
		fmt.Fprintf(page, "\n### %s\n", section.title)
		for _, r := range append(slices.Clone(reasons), nil) {
			if len(groups[r]) > 0 {
				writeGroup(page, r, groups[r])
			}
		}
	}
}

func writeGroup(page *bytes.Buffer, why *reason, group []survivor) {
	text := "Without an explanation."
	if why != nil {
		text = strings.TrimSpace(why.Reason)
	} else if group[0].verdict == fuzzed {
		text = "No fixture finds these mutants."
	}
	fmt.Fprintf(page, "\n%s\n\n", text)
	slices.SortStableFunc(group, func(a, b survivor) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, s := range group {
		note := ""
		if s.verdict == unreached {
			note = " (no fixture runs it)"
		}
		file := s.File[strings.LastIndex(s.File, "/")+1:]
		change := strings.ReplaceAll(s.Change, "`", "'")
		fmt.Fprintf(page, "- %s:%d, %s: `%s`%s\n", file, s.Line, s.Function, change, note)
	}
}
