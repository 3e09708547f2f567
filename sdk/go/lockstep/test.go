package lockstep

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// programVariable is the environment variable with the path of the program kube-lockstep.
	programVariable = "KUBE_LOCKSTEP"
	// serveVariable has the name of the test that serves the engine protocol, in the process that
	// kube-lockstep starts.
	serveVariable = "KUBE_LOCKSTEP_SDK_TEST"
	// recordVariable is the environment variable with which traces are written.
	recordVariable = "KUBE_LOCKSTEP_RECORD"
)

// startFolder is the folder in which the test program was started.
var startFolder, _ = os.Getwd()

// Outcome is the result of a scenario. docs/reports.md describes the JSON output that it is read from.
type Outcome struct {
	// ID of the scenario, and the Path and Line of its file.
	ID   string
	Path string
	Line int
	// Verdict is conforms, diverges, unmet (an expectation is not met), inconclusive or skipped.
	Verdict string
	// Why there is no verdict.
	Why string
	// Divergence is the first difference from upstream's HPA controller.
	Divergence *Divergence
	// Unmet are the expectations of the scenario that the controller does not meet.
	Unmet []Unmet
	// Writes of objects, if the scenario has objects and an expectation is not met.
	Writes []Write
	// Notes on the scenario.
	Notes []Note
}

// Write is a write of an object: by a controller or, without one, by the scenario or the cluster.
type Write struct {
	At, Verb, Controller, Kind, Namespace, Name, Subresource, Error string
	// Changed is true if it changed what was stored.
	Changed bool
	// Fields of an existing object that it changed.
	Fields []struct {
		Path          string
		Before, After json.RawMessage
	}
}

// String returns the write in one line.
func (w Write) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "t=%s %s: %s %s %s/%s %s", w.At, cmp.Or(w.Controller, "(not the controller)"),
		w.Verb, w.Kind, w.Namespace, w.Name, w.Subresource)
	switch {
	case w.Error != "":
		fmt.Fprintf(&b, " rejected: %s", w.Error)
	case !w.Changed:
		b.WriteString(" no change")
	}
	for _, f := range w.Fields {
		fmt.Fprintf(&b, "\n    %s: %.200s -> %.200s", f.Path, f.Before, f.After)
	}
	return b.String()
}

// Note is a note for the author of a scenario.
type Note struct {
	Line int
	What string
}

// Divergence is a difference from upstream's HPA controller in a reconcile.
type Divergence struct {
	Tick   int
	At     string
	Fields []struct{ Field, Model, Upstream string }
}

// Unmet is an expectation that is not met.
type Unmet struct {
	File string
	Line int
	What string
}

// Test runs scenarios on a controller, each as a subtest: ids of fixtures, folders, globs or files. A
// subtest fails if an expectation of its scenario is not met, or if the scenario can't run. Nothing
// is compared with upstream's HPA controller.
//
// It starts the program kube-lockstep, which it finds in PATH or by the environment variable
// KUBE_LOCKSTEP, with this test program as the engine: there, Test serves the engine protocol. What
// precedes Test in the test function runs in both processes.
func Test(t *testing.T, e Engine, scenarios ...string) {
	t.Helper()
	for _, o := range outcomes(t, e, "expectations", scenarios) {
		t.Run(o.ID, o.report)
	}
}

// TestAgainst runs scenarios like [Test], and compares the writes of the controller with those in the
// traces of a folder: a difference fails the subtest. If the environment variable KUBE_LOCKSTEP_RECORD
// is set, it writes the traces.
func TestAgainst(t *testing.T, e Engine, traces string, scenarios ...string) {
	t.Helper()
	option := "--against"
	if os.Getenv(recordVariable) != "" {
		option = "--record"
	}
	args := []string{"run", "--compare", "expectations", option, traces}
	for _, o := range results[Outcome](t, e, args, scenarios) {
		t.Run(o.ID, o.report)
	}
}

// report fails a subtest unless the scenario conforms.
func (o Outcome) report(t *testing.T) {
	switch {
	case o.Verdict == "skipped":
		t.Skip(o.Why)
	case o.Verdict == "inconclusive":
		t.Errorf("%s:%d: no verdict: %s", o.Path, o.Line, o.Why)
	}
	for _, unmet := range o.Unmet {
		t.Errorf("%s:%d: %s", unmet.File, unmet.Line, unmet.What)
	}
	for _, note := range o.Notes {
		t.Logf("%s:%d: note: %s", o.Path, note.Line, note.What)
	}
	for _, write := range o.Writes {
		t.Log(write)
	}
}

// Outcomes runs scenarios like [Test], compares the controller with upstream's HPA controller, field
// by field, and returns the results.
func Outcomes(t *testing.T, e Engine, scenarios ...string) []Outcome {
	t.Helper()
	return outcomes(t, e, "all", scenarios)
}

// outcomes runs scenarios with a value of the option --compare.
func outcomes(t *testing.T, e Engine, compare string, scenarios []string) []Outcome {
	t.Helper()
	return results[Outcome](t, e, []string{"run", "--compare", compare}, scenarios)
}

// results runs a command of kube-lockstep on scenarios, and returns the results in its JSON output. In
// the process that is the engine, it serves the engine protocol.
func results[R interface{ isResult() bool }](
	t *testing.T,
	e Engine,
	args, scenarios []string,
) []R {
	t.Helper()
	if os.Getenv(serveVariable) == t.Name() {
		out := os.Stdout
		os.Stdout = os.Stderr
		serve(t, e, out)
	}
	readInputs(append(slices.Clone(args), scenarios...))
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := engineScript(t)
	if err != nil {
		t.Fatal(err)
	}
	args = append(slices.Clone(args), "--format", "json", "--program", engine, "--")
	cmd := exec.CommandContext(t.Context(), program, append(args, scenarios...)...)
	cmd.Env = append(os.Environ(), serveVariable+"="+t.Name())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	results, parseErr := readResults[R](out)
	if parseErr != nil || len(results) == 0 {
		t.Fatalf("%s: %v\n%s", cmd, errors.Join(err, parseErr), stderr.String())
	}
	return results
}

// Program returns the path of the program kube-lockstep.
func Program() (string, error) {
	if path := os.Getenv(programVariable); path != "" {
		return path, nil
	}
	path, err := exec.LookPath("kube-lockstep")
	if err != nil {
		return "", fmt.Errorf("the program kube-lockstep is neither in PATH nor in the environment "+
			"variable %s: %w; docs/install.md describes how to install it", programVariable, err)
	}
	return path, nil
}

// engineScript writes a script that runs only the current test in this test program.
func engineScript(t *testing.T) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	names := strings.Split(t.Name(), "/")
	for i, name := range names {
		names[i] = "^" + name + "$"
	}
	script := filepath.Join(t.TempDir(), "engine")
	text := fmt.Sprintf("#!/bin/sh\ncd %s\nexec %s -test.run %s -test.timeout 0\n",
		quoted(startFolder), quoted(program), quoted(strings.Join(names, "/")))
	return script, os.WriteFile(script, []byte(text), 0o700)
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// isResult returns false for lines of the output that are not of a scenario.
func (o Outcome) isResult() bool { return o.Verdict != "" }

// readResults reads the JSON output of a run, which ends with a summary: without it, the program has
// not run all scenarios.
func readResults[R interface{ isResult() bool }](out []byte) (results []R, err error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	ended := false
	for lines.Scan() {
		var r R
		var last struct{ Summary json.RawMessage }
		err := errors.Join(json.Unmarshal(lines.Bytes(), &r), json.Unmarshal(lines.Bytes(), &last))
		if err != nil {
			return nil, fmt.Errorf("the output of kube-lockstep: %w", err)
		}
		ended = last.Summary != nil
		if r.isResult() {
			results = append(results, r)
		}
	}
	if lines.Err() == nil && !ended {
		return nil, errors.New("kube-lockstep ended before its summary")
	}
	return results, lines.Err()
}
