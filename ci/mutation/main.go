// Mutation measures how many changes of upstream's HPA controller the fixtures notice.
//
// It changes the controller's source in one place at a time (a mutant), runs the fixtures on the
// changed controller, and counts the changes that cause a divergence. All mutants are in one
// program: each is behind a switch, which an environment variable selects. See docs/mutation.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ci/mutate:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	report := ""
	flag.StringVar(&o.repository, "repository", ".", "the folder of this project")
	flag.StringVar(&o.folder, "folder", "", "the folder of the run: a run that was stopped continues")
	flag.StringVar(&o.program, "program", "", "kube-lockstep")
	flag.StringVar(&o.release, "release", "1.37", "the Kubernetes release")
	flag.IntVar(&o.every, "every", 1, "run each N-th mutant only")
	flag.StringVar(&o.only, "only", "", "run mutants only whose function and change contain this text")
	flag.IntVar(&o.jobs, "jobs", 2, "the number of mutants at a time")
	flag.IntVar(&o.ticks, "fuzz", 0, "then fuzz each survivor for this number of ticks")
	flag.BoolVar(&o.again, "again", false, "run the survivors again, after fixtures were added")
	flag.StringVar(&report, "report", "", "write the report of the run to this file, and run nothing")
	flag.Parse()
	for _, path := range []*string{&o.repository, &o.folder, &o.program} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if report != "" {
		return o.report(report)
	}
	if err := os.MkdirAll(o.folder, 0o777); err != nil {
		return err
	}
	g, err := o.prepare()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d mutants\n", len(g.Mutants))
	return o.runAll(g)
}
