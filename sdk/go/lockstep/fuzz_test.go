package lockstep

import (
	"os"
	"strings"
	"testing"
)

// A controller that scales up in each period exceeds any number of writes, in any scenario that is
// long enough. The saved scenario is a smallest one.
func TestFuzzFindsAndShrinksAFailure(t *testing.T) {
	if _, err := Program(); err != nil {
		t.Skip(err)
	}
	options := FuzzOptions{Expect: "testdata/few-writes.yaml", Ticks: 300, Save: t.TempDir()}
	lines := fuzz(t, Engine{Name: "scaler", Start: scaler}, options)
	if len(lines) != 2 || lines[0].Found == nil || lines[1].Summary == nil {
		t.Fatalf("%+v", lines)
	}
	found := lines[0].Found
	if found.Kind != "expectation 1" || len(found.Failure.Unmet) != 1 ||
		!strings.Contains(found.Failure.Unmet[0].What, "expected at most 3") {
		t.Errorf("%+v", found)
	}
	text, err := os.ReadFile(found.File)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 30 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if strings.Contains(string(text), "timeline") {
		t.Errorf("the timeline does not matter:\n%s", text)
	}
}
