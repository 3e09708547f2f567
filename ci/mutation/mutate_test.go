package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = `package main

type limits struct {
	least, most int32
}

func (l limits) clamp(wanted int32, strict bool) (result int32, reason string) {
	if wanted > l.most && strict {
		return l.most, "too many"
	}
	result = wanted
	if result < l.least {
		result = l.least
		reason += "too few"
	}
	return result, reason
}

func sum(values map[string]int) (total int) {
	for _, value := range values {
		total += value
	}
	return total
}

func main() {
	l := limits{least: 2, most: 7}
	for _, wanted := range []int32{1, 2, 7, 8} {
		result, reason := l.clamp(wanted, true)
		print(result, reason, " ")
	}
	print(sum(map[string]int{"a": 1, "b": 2}))
}
`

// mutatedSample returns the mutants and the changed text of the sample.
func mutatedSample(t *testing.T) ([]*mutant, string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sample.go", sample, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := &sourcePackage{
		path: "sample", fset: fset, info: newInfo(),
		files: map[string]*ast.File{"sample.go": file},
		texts: map[string][]byte{"sample.go": []byte(sample)},
	}
	config := types.Config{Importer: importer.Default()}
	if p.types, err = config.Check("main", fset, []*ast.File{file}, p.info); err != nil {
		t.Fatal(err)
	}
	ms := &mutants{seen: map[string]int{}}
	changed, _ := p.mutate("sample.go", ms)
	return ms.all, string(changed)
}

func TestEachKindOfOperatorHasMutants(t *testing.T) {
	all, _ := mutatedSample(t)
	var keys []string
	for _, m := range all {
		keys = append(keys, string(m.Kind)+": "+m.Key())
	}
	for _, wanted := range []string{
		"relational operator: limits.clamp: wanted > l.most → wanted >= l.most",
		"logical operator: limits.clamp: wanted > l.most && strict → wanted > l.most || strict",
		"forced condition: limits.clamp: result < l.least → false",
		"deleted statement: limits.clamp: result = l.least → ",
		"another field: limits.clamp: l.most → l.least",
		"another variable: limits.clamp: wanted → result",
		"arithmetic operator: sum: total += value → total -= value",
		"zeroed value: sum: total → zero",
		`text: limits.clamp: "too many" → "too many" + "~"`,
		"constant: main: 7 → 7 + 1",
	} {
		if !slices.Contains(keys, wanted) {
			t.Errorf("missing: %s\n%s", wanted, strings.Join(keys, "\n"))
		}
	}
}

func TestKeysAreUnique(t *testing.T) {
	all, _ := mutatedSample(t)
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.Key()] {
			t.Errorf("twice: %s", m.Key())
		}
		seen[m.Key()] = true
	}
}

func TestLinesKeepTheirNumbers(t *testing.T) {
	_, changed := mutatedSample(t)
	if lines := strings.Count(changed, "\n"); lines != strings.Count(sample, "\n") {
		t.Errorf("%d lines", lines)
	}
}

func TestASwitchSelectsOneMutant(t *testing.T) {
	all, changed := mutatedSample(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n", "sample.go": changed,
		switchesFile: "package main\n" + switches,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(folder, "sample")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(id int) string {
		command := exec.Command(program)
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", selected, id))
		out, _ := command.CombinedOutput()
		return string(out)
	}
	const unchanged = "2too few 2 7 7too many 3"
	if got := run(0); got != unchanged {
		t.Errorf("unchanged: %q", got)
	}
	different := 0
	for _, m := range all {
		got := run(m.ID)
		if got != unchanged {
			different++
		}
		if strings.HasPrefix(m.Key(), `limits.clamp: "too many"`) && got != "2too few 2 7 7too many~ 3" {
			t.Errorf("%s: %q", m.Key(), got)
		}
	}
	if share := 100 * different / len(all); share < 70 {
		t.Errorf("only %d %% of %d mutants have an effect", share, len(all))
	}
}

// reasonsIn reads reasons from a text.
func reasonsIn(t *testing.T, text string) []*reason {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mutants.yaml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	reasons, err := readReasons(path)
	if err != nil {
		t.Fatal(err)
	}
	return reasons
}

func TestEachKeyStatesItsNumberOfSurvivors(t *testing.T) {
	const text = `
- class: equivalent
  reason: R
  mutants: ["one: a → b", {"wide: *": 2}]
`
	for _, test := range []struct {
		survivors []string
		wrong     string
	}{
		{[]string{"one: a → b", "wide: a", "wide: b"}, ""},
		{[]string{"one: a → b", "wide: a", "wide: b", "wide: c"}, "key wide: *: expected 2, found 3 survivors"},
		{[]string{"one: a → b", "wide: a"}, "key wide: *: expected 2, found 1 survivors"},
		{[]string{"wide: a", "wide: b"}, "key one: a → b: expected 1, found 0 survivors"},
	} {
		reasons, found := reasonsIn(t, text), map[*survivors]int{}
		for _, key := range test.survivors {
			if reasonOf(reasons, key, found) == nil {
				t.Errorf("%s has no reason", key)
			}
		}
		got := ""
		if err := wrongNumbers(reasons, found); err != nil {
			got = strings.TrimPrefix(err.Error(), "ci/mutants.yaml: ")
		}
		if got != test.wrong {
			t.Errorf("%v: %q, not %q", test.survivors, got, test.wrong)
		}
	}
}

func TestAnOutdatedReasonIsAnError(t *testing.T) {
	const text = "{class: unreachable, reason: R, mutants: [a]"
	if err := outdated(reasonsIn(t, "- "+text+"}\n")); err != nil {
		t.Error(err)
	}
	if err := outdated(reasonsIn(t, "- "+text+", outdated: true}\n")); err == nil {
		t.Error("no error")
	}
}

// The reasons of the repository explain the survivors on its page, each key as many as it states.
func TestTheReasonsAreThoseOfThePage(t *testing.T) {
	reasons, err := readReasons("../mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/mutation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Survivors")
	row := regexp.MustCompile("(?m)^- [a-z_]+\\.go:[0-9]+, ([^:]+): `([^`]*)`")
	found := map[*survivors]int{}
	for _, match := range row.FindAllStringSubmatch(list, -1) {
		key := match[1] + ": " + match[2]
		if reasonOf(reasons, key, found) == nil {
			t.Errorf("no reason: %s", key)
		}
	}
	if err := wrongNumbers(reasons, found); err != nil {
		t.Error(err)
	}
}
