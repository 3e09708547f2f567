package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// outcome is the result of a fixture, as kube-lockstep reports it.
type outcome struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Verdict string `json:"verdict"`
	Why     string `json:"why"`
}

// Limits of a run. Mutants may loop: the machine may be busy, so the limits are generous.
const (
	answerLimit = "20s"
	runLimit    = 10 * time.Minute
)

// play runs fixtures (none: all) on the host with a mutant (0: none). It ends early after an outcome
// for which stop returns true.
func (o *options) play(id int, ids []string, reached string, stop func(outcome) bool) ([]outcome, error) {
	args := []string{
		"run", "--program", o.path(limitedFile), "--release", o.release,
		"--format", "json", "--time-limit", answerLimit, "-j", "1",
	}
	command := o.command(id, append(args, ids...), reached)
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	limit := time.AfterFunc(runLimit, func() { _ = command.Process.Kill() })
	defer limit.Stop()
	var outcomes []outcome
	stopped := false
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var one outcome
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("kube-lockstep: %w: %s", err, line)
		}
		if one.ID == "" {
			continue
		}
		outcomes = append(outcomes, one)
		if stop(one) {
			stopped = true
			// The command ends the host.
			_ = command.Process.Signal(syscall.SIGINT)
			break
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = command.Wait()
	var exit *exec.ExitError
	// 1: a divergence; 3: the host failed.
	if !stopped && err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		return nil, fmt.Errorf("kube-lockstep run: %w", err)
	}
	return outcomes, nil
}

// command returns a call of kube-lockstep that runs a mutant.
func (o *options) command(id int, args []string, reached string) *exec.Cmd {
	command := exec.Command(o.program, args...)
	command.Dir = o.repository
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", selected, id), recorded+"="+reached)
	return command
}

// kills returns how an outcome shows that the controller was changed, or "".
func (one outcome) kills() string {
	switch {
	case one.Verdict == "diverges" || one.Verdict == "unexpected":
		return "diverges"
	case one.Verdict != "inconclusive":
		return ""
	case strings.Contains(one.Why, "did not answer"):
		return "hangs"
	case strings.Contains(one.Why, "engine failed") || strings.Contains(one.Why, "exited"):
		return "fails"
	}
	return ""
}

// fuzz runs generated scenarios on a mutant, and returns how they show the change, or "".
func (o *options) fuzz(id int) (how string, err error) {
	found, err := os.MkdirTemp(o.folder, "fuzz-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(found)
	command := o.command(id, []string{
		"fuzz", "--program", o.path(limitedFile), "--release", o.release, "-j", "1",
		"--seed", "1", "--ticks", fmt.Sprint(o.ticks), "--save", found, "--format", "json",
	}, "")
	if err := command.Start(); err != nil {
		return "", err
	}
	limit := time.AfterFunc(runLimit, func() { _ = command.Process.Signal(syscall.SIGINT) })
	defer limit.Stop()
	err = command.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return "diverges", nil
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		return "fails", nil
	}
	return "", fmt.Errorf("kube-lockstep fuzz: %w", err)
}
