package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kube-lockstep.dev/sdk/lockstep"
	"sigs.k8s.io/yaml"
)

// difference is a class of scenarios in which the controller with its real clients does not
// conform, and the reason.
type difference struct {
	Reason string `json:"reason"`
	// Chance is true if the scenarios differ in some runs only.
	Chance bool `json:"chance"`
	// Inconclusive are ids or globs of scenarios without a verdict, Diverges of those that diverge.
	Inconclusive []string `json:"inconclusive"`
	Diverges     []string `json:"diverges"`
}

func readDifferences(t *testing.T) (list []difference) {
	text, err := os.ReadFile("differences.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every fixture conforms, except those in differences.yaml, each of which must still differ.
func TestFixturesConform(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	fixtures, err := filepath.Abs("../../../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	differences := readDifferences(t)
	t.Chdir(filepath.Dir(fixtures)) // where the program finds the fixtures
	outcomes := lockstep.Outcomes(t, engine, folders(t, fixtures)...)
	used := map[string]bool{}
	counts := map[string]int{}
	for _, o := range outcomes {
		counts[o.Verdict]++
		if o.Verdict == "skipped" {
			continue
		}
		pattern, known := expected(differences, o)
		used[pattern] = true
		if !known && o.Verdict != "conforms" {
			t.Errorf("%s %s: %s %s", o.ID, o.Verdict, o.Why, first(o.Divergence))
		}
	}
	for _, d := range differences {
		for _, pattern := range append(d.Inconclusive, d.Diverges...) {
			if !used[pattern] && !d.Chance {
				t.Errorf("differences.yaml: %s agrees, or there is no such scenario", pattern)
			}
		}
	}
	t.Log(counts)
}

// folders are the folders of fixtures of an HPA alone: those with a VPA build upstream's
// recommender.
func folders(t *testing.T, fixtures string) (list []string) {
	entries, err := os.ReadDir(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "vpa", "hpa-and-vpa", "invalid", "manifests":
			continue
		}
		if e.IsDir() {
			list = append(list, e.Name())
		}
	}
	return list
}

// expected returns the pattern in the differences that an outcome matches.
func expected(differences []difference, o lockstep.Outcome) (pattern string, known bool) {
	for _, d := range differences {
		patterns := map[string][]string{"inconclusive": d.Inconclusive, "diverges": d.Diverges}[o.Verdict]
		if d.Chance && o.Verdict == "inconclusive" {
			patterns = d.Diverges // the repetition of the scenario agreed
		}
		for _, pattern := range patterns {
			if ok, _ := filepath.Match(pattern, o.ID); ok {
				return pattern, true
			}
		}
	}
	return "", false
}

func first(d *lockstep.Divergence) string {
	if d == nil || len(d.Fields) == 0 {
		return ""
	}
	f := d.Fields[0]
	return fmt.Sprintf("tick %d, %s: upstream %s, here %s", d.Tick, f.Field, f.Model, f.Upstream)
}
