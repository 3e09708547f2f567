package lockstep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// programVariable is the environment variable with the path of the program kube-lockstep.
	programVariable = "KUBE_LOCKSTEP"
	// serveVariable has the name of the test that serves the engine protocol, in the process that
	// kube-lockstep starts.
	serveVariable = "KUBE_LOCKSTEP_SDK_TEST"
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
		t.Run(o.ID, func(t *testing.T) {
			switch {
			case o.Verdict == "skipped":
				t.Skip(o.Why)
			case o.Verdict == "inconclusive":
				t.Errorf("%s:%d: no verdict: %s", o.Path, o.Line, o.Why)
			}
			for _, unmet := range o.Unmet {
				t.Errorf("%s:%d: %s", unmet.File, unmet.Line, unmet.What)
			}
		})
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
	if os.Getenv(serveVariable) == t.Name() {
		out := os.Stdout
		os.Stdout = os.Stderr
		serve(t, e, out)
	}
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := engineScript(t)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program,
		append([]string{"run", "--format", "json", "--program", engine, "--compare", compare, "--"},
			scenarios...)...)
	cmd.Env = append(os.Environ(), serveVariable+"="+t.Name())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	outcomes, parseErr := readOutcomes(out)
	if parseErr != nil || len(outcomes) == 0 {
		t.Fatalf("%s: %v\n%s", cmd, errors.Join(err, parseErr), stderr.String())
	}
	return outcomes
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

// readOutcomes reads the JSON output of a run. The lines without a verdict are not of a scenario.
func readOutcomes(out []byte) (outcomes []Outcome, err error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var o Outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("the output of kube-lockstep: %w", err)
		}
		if o.Verdict != "" {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes, lines.Err()
}
