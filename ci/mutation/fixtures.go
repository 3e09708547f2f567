package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// reach is what a fixture reaches: the mutants whose code it runs. The hash is that of the fixture
// and of all mutants.
type reach struct {
	Hash    string `json:"hash"`
	Mutants []int  `json:"mutants"`
}

// fixtures are the fixtures that conform, with the mutants that they reach.
type fixtures struct {
	ids     []string
	reached map[string]reach
	of      map[int][]string // the fixtures that reach a mutant
}

// measure runs each fixture alone on the unchanged controller, unless an earlier run did.
func (o *options) measure(g *generated) (*fixtures, error) {
	f := &fixtures{reached: map[string]reach{}, of: map[int][]string{}}
	outcomes, err := o.play(0, nil, "", func(outcome) bool { return false })
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, one := range outcomes {
		switch one.Verdict {
		case "conforms":
			f.ids = append(f.ids, one.ID)
			paths[one.ID] = one.Path
		case "skipped":
		default:
			return nil, fmt.Errorf("%s on the unchanged controller: %s %s", one.ID, one.Verdict, one.Why)
		}
	}
	if text, err := os.ReadFile(o.path(reachedFile)); err == nil {
		if err := json.Unmarshal(text, &f.reached); err != nil {
			return nil, fmt.Errorf("%s: %w", reachedFile, err)
		}
	}
	all, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	if err := o.measureAll(f, paths, all); err != nil {
		return nil, err
	}
	for _, id := range f.ids {
		for _, mutant := range f.reached[id].Mutants {
			f.of[mutant] = append(f.of[mutant], id)
		}
	}
	text, err := json.Marshal(f.reached)
	if err != nil {
		return nil, err
	}
	return f, os.WriteFile(o.path(reachedFile), text, 0o666)
}

// measureAll measures the fixtures that changed since the last run. paths are their files, and salt
// is part of their hashes.
func (o *options) measureAll(f *fixtures, paths map[string]string, salt []byte) error {
	var mutex sync.Mutex
	return each(o.jobs, f.ids, func(id string) error {
		text, err := os.ReadFile(filepath.Join(o.repository, paths[id]))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(append(text, salt...))
		hash := hex.EncodeToString(sum[:8])
		mutex.Lock()
		before, known := f.reached[id]
		mutex.Unlock()
		if known && before.Hash == hash {
			return nil
		}
		found, err := o.reachOf(id)
		mutex.Lock()
		f.reached[id] = reach{hash, found}
		mutex.Unlock()
		return err
	})
}

// reachOf returns the mutants that a fixture reaches.
func (o *options) reachOf(id string) ([]int, error) {
	file := o.path("reach-" + strings.ReplaceAll(id, "/", "-"))
	defer os.Remove(file)
	if _, err := o.play(0, []string{id}, file, func(outcome) bool { return false }); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, line := range strings.Fields(string(text)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		found = append(found, number)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// each calls a function for each item, several at a time, until one fails.
func each[T any](jobs int, items []T, do func(T) error) error {
	var (
		wait   sync.WaitGroup
		mutex  sync.Mutex
		failed error
		next   int
	)
	for range jobs {
		wait.Go(func() {
			for {
				mutex.Lock()
				at := next
				next++
				stop := failed != nil || at >= len(items)
				mutex.Unlock()
				if stop {
					return
				}
				if err := do(items[at]); err != nil {
					mutex.Lock()
					failed = err
					mutex.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return failed
}
