package lockstep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"kube-lockstep.dev/sdk/apiserver"
)

// Engine is a controller that runs in virtual time.
type Engine struct {
	// Name is the name in reports.
	Name string
	// Release is the release of Kubernetes whose behavior the controller should have. The default is
	// that of the API server in memory.
	Release string
	// Prepare, if set, is called before each scenario, for example to serve custom resources with
	// run.Server.ServeCRD.
	Prepare func(run *Run) error
	// Start runs the controller until the context ends. It is called again in each scenario, and after
	// each restart of the controller.
	Start func(ctx context.Context, run *Run) error
	// RequestsPerInstant is the number of requests that the controller may send without time passing.
	// A controller that sends more never rests, and its scenario fails. The default is 10000.
	RequestsPerInstant int
	// WritesPerInstant is the same for writes, except those of events. The default is 1000.
	WritesPerInstant int
	// Patience is the time of the machine's clock that a step may take before the engine reports which
	// goroutine holds up the clock, and exits. The default is 20 s.
	Patience time.Duration
}

func (e Engine) withDefaults() Engine {
	if e.Name == "" {
		e.Name = "controller"
	}
	if e.Release == "" {
		e.Release = apiserver.Release
	}
	if e.RequestsPerInstant <= 0 {
		e.RequestsPerInstant = 10000
	}
	if e.WritesPerInstant <= 0 {
		e.WritesPerInstant = 1000
	}
	if e.Patience <= 0 {
		e.Patience = 20 * time.Second
	}
	return e
}

// Run is a run of a controller in a scenario.
type Run struct {
	// Config is the configuration of the controller's clients.
	Config *rest.Config
	// Server is the API server, to serve other resources.
	Server *apiserver.Server
	// Namespace is the namespace of the scenario's HPAs.
	Namespace string
	// FeatureGates are the feature gates that the scenario sets.
	FeatureGates map[string]bool
	// Metrics may be set by Start. It returns the changes of the controller's own Prometheus metrics
	// since its last call. It is called when time passes or the controller has become idle, and must
	// return nothing in the middle of a reconcile.
	Metrics func() []MetricChange

	flags map[string]json.RawMessage
	life  *life
}

// ConfigFor returns the configuration of another controller in the same scenario, whose requests are
// reported under its name.
func (r *Run) ConfigFor(controller string) *rest.Config {
	c := r.Server.Config(controller)
	c.Transport = mortal{c.Transport, r.life}
	return c
}

// Duration returns a flag of the kube-controller-manager that is a duration, by its name without
// --horizontal-pod-autoscaler-, like sync-period.
func (r *Run) Duration(flag string) time.Duration {
	var d time.Duration
	_ = json.Unmarshal(r.flags[flag], &d)
	return d
}

// Float returns a flag of the kube-controller-manager that is a number, like tolerance.
func (r *Run) Float(flag string) float64 {
	var f float64
	_ = json.Unmarshal(r.flags[flag], &f)
	return f
}

// MetricChange is a change of one of the controller's own Prometheus metrics.
type MetricChange struct {
	// Series is the name with its labels, as the engine protocol describes it.
	Series string
	// Increase of a counter, or the new Value of a gauge, as a JSON number.
	Increase, Value json.Number
}

// MarshalJSON writes the change as the engine protocol does.
func (c MetricChange) MarshalJSON() ([]byte, error) {
	if c.Value != "" {
		return json.Marshal(map[string]any{"series": c.Series, "value": c.Value})
	}
	return json.Marshal(map[string]any{"series": c.Series, "increase": c.Increase})
}

// Serve answers the engine protocol on standard input and output, and exits when the input ends. It
// is all of a main function. What the controller prints on standard output goes to standard error.
func Serve(e Engine) {
	out := os.Stdout
	os.Stdout = os.Stderr
	os.Args = os.Args[:1]
	// A bubble requires a *testing.T.
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "engine", F: func(t *testing.T) { serve(t, e, out) }}}, nil, nil)
}

// serve serves the protocol and exits.
func serve(t *testing.T, e Engine, out *os.File) {
	if err := newHost(e, os.Stdin, out).serve(t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
