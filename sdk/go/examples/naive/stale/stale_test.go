package stale

import (
	"context"
	"strings"
	"testing"

	"kube-lockstep.dev/sdk/lockstep"
	ctrl "sigs.k8s.io/controller-runtime"
)

var engine = lockstep.Engine{
	Name: "stale",
	Start: func(ctx context.Context, run *lockstep.Run) error {
		ctrl.SetLogger(lockstep.Logger())
		return Run(ctx, run.Config)
	},
}

const scenario = "scenarios/doubles-once.yaml"

// In the ordinary order of events, the bug does not show.
func TestTheScenarioConforms(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	lockstep.Test(t, engine, scenario)
}

// A late event of the controller's own write shows it. The finding has nothing else, and can be
// replayed.
func TestALateEventOfItsOwnWriteIsFound(t *testing.T) {
	if _, err := lockstep.Program(); err != nil {
		t.Skip(err)
	}
	explored := lockstep.Explorations(t, engine, []string{scenario}, lockstep.ExploreOptions{})
	found := explored[0].Findings
	if len(explored) != 1 || len(found) != 1 || len(found[0].Disturbances) != 1 {
		t.Fatalf("%+v", explored)
	}
	t.Log(found[0])
	late := found[0].Disturbances[0]
	if !strings.HasPrefix(late.Text, "hold event ") ||
		!strings.HasSuffix(late.Text, " of deployments.apps for 1ms") ||
		!strings.Contains(late.Sentence, "MODIFIED web at t=1m") {
		t.Errorf("%+v", late)
	}
	if unmet := found[0].Outcome.Unmet; len(unmet) != 1 || !strings.Contains(unmet[0].What, "16") {
		t.Errorf("%+v", unmet)
	}
}
