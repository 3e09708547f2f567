package main

import (
	"testing"

	"kube-lockstep.dev/sdk/lockstep"
)

func TestScenarios(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Test(t, engine, "scenarios/*.yaml")
}
