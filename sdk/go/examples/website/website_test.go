package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kube-lockstep.dev/sdk/lockstep"
)

func TestScenarios(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Test(t, engine, "scenarios/*.yaml")
}

// Each run writes the same. In drift.yaml, the controller may not have seen yet that the Website is
// deleted when it creates the Deployment again.
func TestTraces(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	// Not t.TempDir: the process that is the engine would leave one behind.
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("website-traces-%d", os.Getpid()))
	defer os.RemoveAll(folder)
	t.Setenv("KUBE_LOCKSTEP_RECORD", "1")
	t.Run("record", func(t *testing.T) {
		lockstep.TestAgainst(t, engine, folder, "scenarios/pods.yaml", "scenarios/re*.yaml")
	})
	t.Setenv("KUBE_LOCKSTEP_RECORD", "")
	t.Run("compare", func(t *testing.T) {
		lockstep.TestAgainst(t, engine, folder, "scenarios/pods.yaml", "scenarios/re*.yaml")
	})
}
