package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// options are the settings of a run.
type options struct {
	repository string // this project
	folder     string // of all files that the run writes
	program    string // kube-lockstep
	release    string
	every      int    // run each n-th mutant only
	only       string // run mutants only whose keys contain this text
	jobs       int
	ticks      int  // of fuzzing on each survivor
	again      bool // run survivors again
}

func (o *options) path(name string) string { return filepath.Join(o.folder, name) }

// The files of a run.
const (
	mutantsFile = "mutants.json"
	hostFile    = "host"
	limitedFile = "limited-host"
	resultsFile = "results.jsonl"
	reachedFile = "reached.json"
)

// generated describes all mutants of a release.
type generated struct {
	Mutants []*mutant `json:"mutants"`
	Logging int       `json:"logging"` // statements that only log
	Release string    `json:"release"`
}

// flags returns the flags with which the project builds the host of the release.
func (o *options) flags(modfile string) []string {
	var minor int
	_, _ = fmt.Sscanf(o.release, "1.%d", &minor)
	var tags []string
	for i := 6; i <= minor; i++ {
		tags = append(tags, fmt.Sprintf("k1.%d", i))
	}
	return []string{"-mod=readonly", "-modfile=" + modfile, "-tags=" + strings.Join(tags, ",")}
}

// prepare writes the mutated sources and builds the host, unless both exist.
func (o *options) prepare() (*generated, error) {
	upstream := filepath.Join(o.repository, "upstream")
	modfile := fmt.Sprintf("versions/v%s.mod", o.release)
	packages, err := load(upstream, o.flags(modfile))
	if err != nil {
		return nil, err
	}
	link, modfile, err := o.linked(upstream, modfile, packages[0])
	if err != nil {
		return nil, err
	}
	g := &generated{Release: o.release}
	ms := &mutants{seen: map[string]int{}}
	replaced := map[string]string{}
	for _, p := range packages {
		names := make([]string, 0, len(p.files))
		for name := range p.files {
			names = append(names, name)
		}
		slices.Sort(names)
		write := func(name string, text []byte) error {
			file := o.path("source/" + p.treePath(name))
			replaced[filepath.Join(link, strings.TrimPrefix(p.path, tree), name)] = file
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				return err
			}
			return os.WriteFile(file, text, 0o666)
		}
		for _, name := range names {
			text, logging := p.mutate(name, ms)
			g.Logging += logging
			if err := write(name, text); err != nil {
				return nil, err
			}
		}
		text := "package " + p.types.Name() + "\n" + switches
		if err := write(switchesFile, []byte(text)); err != nil {
			return nil, err
		}
	}
	g.Mutants = ms.all
	return g, o.build(upstream, modfile, g, replaced)
}

// linked makes upstream's module available outside of Go's module cache, in which Go does not let an
// overlay replace files. It returns a link to the module and the mod file that uses it.
func (o *options) linked(upstream, modfile string, p *sourcePackage) (link, linked string, err error) {
	folder := strings.TrimSuffix(p.dir, strings.TrimPrefix(p.path, strings.TrimSuffix(tree, "/")))
	// The host reads its release from the name of the folder.
	link = o.path("k8s.io/" + filepath.Base(folder))
	if err := os.MkdirAll(filepath.Dir(link), 0o777); err != nil {
		return "", "", err
	}
	if err := os.Symlink(folder, link); err != nil && !os.IsExist(err) {
		return "", "", err
	}
	linked = o.path("host.mod")
	text, err := os.ReadFile(filepath.Join(upstream, modfile))
	if err != nil {
		return "", "", err
	}
	text = fmt.Appendf(text, "\nreplace %s => %s\n", strings.TrimSuffix(tree, "/"), link)
	if err := os.WriteFile(linked, text, 0o666); err != nil {
		return "", "", err
	}
	sums := strings.TrimSuffix(modfile, ".mod") + ".sum"
	text, err = os.ReadFile(filepath.Join(upstream, sums))
	if err != nil {
		return "", "", err
	}
	return link, linked, os.WriteFile(o.path("host.sum"), text, 0o666)
}

// build compiles the host with the mutated sources.
func (o *options) build(upstream, modfile string, g *generated, replaced map[string]string) error {
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.path("overlay.json"), overlay, 0o666); err != nil {
		return err
	}
	args := append([]string{
		"test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay=" + o.path("overlay.json"), "-o", o.path(hostFile),
	}, o.flags(modfile)...)
	command := exec.Command("go", append(args, "./virtual")...)
	command.Dir, command.Stdout, command.Stderr = upstream, os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("the mutated host can't be built: %w", err)
	}
	limited := fmt.Sprintf("#!/bin/sh\nulimit -v %d\nexec %s\n", memory, o.path(hostFile))
	if err := os.WriteFile(o.path(limitedFile), []byte(limited), 0o777); err != nil {
		return err
	}
	text, err := json.MarshalIndent(g, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.path(mutantsFile), text, 0o666)
}

// memory is the limit of a host's address space, in KiB. Go itself reserves more than a GiB.
const memory = 4 << 20
