package lockstep

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// fileReference finds the files that a scenario names: {file: ../config/crd.yaml}.
var fileReference = regexp.MustCompile(`\b(?:file|csv|prometheus|openMetrics):\s*["']?([^"',}\s]+)`)

// readInputs reads the files of scenarios and traces, which only the program kube-lockstep uses: go test
// repeats a cached result unless a file changes that the test itself has read. Ids of fixtures are no
// files.
func readInputs(paths []string) {
	for _, path := range paths {
		fixed, _, _ := strings.Cut(path, "*")
		if fixed != path {
			fixed = filepath.Dir(fixed + "x")
		}
		_ = filepath.WalkDir(fixed, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil
			}
			for _, found := range fileReference.FindAllSubmatch(text, -1) {
				_, _ = os.ReadFile(filepath.Join(filepath.Dir(file), string(found[1])))
			}
			return nil
		})
	}
}
