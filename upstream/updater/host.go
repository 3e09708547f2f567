// Package updater hosts the updater and the admission controller of the Vertical Pod Autoscaler in
// virtual time, so that the harness can compare its simulation of both with upstream's code.
//
// Each line of the input is a JSON object. The first one starts the updater with its flags. Each of the
// others has independent cases, each in a namespace of its own: a VPA, pods, and the ReplicaSets that
// own them. If it has a time, the updater runs once at that time. The answer has, for each case, the
// requests that change pods, in their order, and for each pod the patches that the admission controller
// would apply to it.
//
// Everything that decides is upstream's code. The replacements of the cluster are ours: stores that
// hold the objects, a client that records requests, and the two fetchers that find the selector of a
// VPA and the Deployment of a ReplicaSet.
package updater

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	admission "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/patch"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/recommendation"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpa_clientset "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/features"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/inplace"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/limitrange"
	vpa_api_util "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/utils/vpa"
)

// request is one line of the input. Exactly one member is set.
type request struct {
	Open   *openRequest   `json:"open,omitempty"`
	Decide *decideRequest `json:"decide,omitempty"`
}

// openRequest starts the updater.
type openRequest struct {
	Flags flags `json:"flags"`
	// Resizes says whether the API server accepts the resize of a pod.
	Resizes bool `json:"resizes"`
}

// decideRequest asks for decisions about pods.
type decideRequest struct {
	// Now is the time at which the updater runs. Without it, the updater does not run.
	Now   *time.Time `json:"now,omitempty"`
	Cases []fixed    `json:"cases"`
}

// flags are the flags of the updater. Durations are in nanoseconds.
type flags struct {
	MinReplicas             int           `json:"minReplicas"`
	EvictionTolerance       fraction      `json:"evictionTolerance"`
	PodUpdateThreshold      fraction      `json:"podUpdateThreshold"`
	LifetimeThreshold       time.Duration `json:"lifetimeThreshold"`
	EvictAfterOOMThreshold  time.Duration `json:"evictAfterOomThreshold"`
	SkipsDisruptionBudget   bool          `json:"skipsDisruptionBudget"`
	FeatureGatePerVPAConfig bool          `json:"perVpaConfig"`
}

// fraction is a number as a text, because JSON has no infinity.
type fraction float64

// UnmarshalText reads a number as the flags of upstream do.
func (f *fraction) UnmarshalText(text []byte) error {
	number, err := strconv.ParseFloat(string(text), 64)
	*f = fraction(number)
	return err
}

// fixed is the cluster of a case, which does not change during a run.
type fixed struct {
	VPA         *vpa_types.VerticalPodAutoscaler `json:"vpa"`
	ReplicaSets []*appsv1.ReplicaSet             `json:"replicaSets"`
	Pods        []*corev1.Pod                    `json:"pods"`
}

// answer is one line of the output.
type answer struct {
	Cases []result `json:"cases"`
}

// result is the answer to one case.
type result struct {
	Updates []update `json:"updates"`
	// Admissions has the patches for each pod, in the order of the pods.
	Admissions [][]admission.PatchRecord `json:"admissions"`
}

// update is a request that changes a pod. Exactly one member is set.
type update struct {
	Evict  string  `json:"evict,omitempty"`
	Resize *resize `json:"resize,omitempty"`
}

// resize is the change of a running pod.
type resize struct {
	Pod     string          `json:"pod"`
	Patches json.RawMessage `json:"patches"`
}

// Host answers requests until the input ends, then exits. The clock of its bubble begins at
// 2000-01-01T00:00:00Z and stands still while the host waits for a request.
func Host(t *testing.T, in io.Reader, out io.Writer) {
	discardLog()
	synctest.Test(t, func(*testing.T) {
		// The bubble itself can't end: the updater's watch of VPAs has no end.
		exit(serve(in, out))
	})
}

// discardLog discards upstream's log. By default, errors are also written to the standard error.
func discardLog() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	options := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(options)
	if err := options.Set("stderrthreshold", "FATAL"); err != nil {
		panic(err)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<30)
	answers := json.NewEncoder(out)
	var h *host
	for lines.Scan() {
		var q request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		switch {
		case q.Open != nil && h == nil:
			var err error
			if h, err = open(q.Open); err != nil {
				return err
			}
		case q.Decide != nil && h != nil:
			a, err := h.decide(q.Decide)
			if err != nil {
				return err
			}
			if err := answers.Encode(a); err != nil {
				return err
			}
		default:
			return errors.New("an unexpected request")
		}
	}
	return lines.Err()
}

// exit ends the host.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// host has an updater and an admission controller with their cluster.
type host struct {
	cluster     *cluster
	vpas        *vpaAPI
	replicaSets cache.Store
	pods        cache.Store
	updater     logic.Updater
	admission   patch.Calculator
}

// open starts an updater and an admission controller in an empty cluster.
func open(q *openRequest) (*host, error) {
	gate := fmt.Sprintf("%s=%t", features.PerVPAConfig, q.Flags.FeatureGatePerVPAConfig)
	if err := features.MutableFeatureGate.Set(gate); err != nil {
		return nil, err
	}
	c := newCluster(q.Resizes)
	limits := limitrange.NewNoopLimitsCalculator()
	processor := vpa_api_util.NewCappingRecommendationProcessor(limits)
	provider := recommendation.NewProvider(limits, processor)
	replicaSets := informers.NewSharedInformerFactory(c.kube, 0)
	pods := informers.NewSharedInformerFactory(c.kube, 0)
	vpas := newVPAAPI()
	client, err := vpas.client()
	if err != nil {
		return nil, err
	}
	updater, err := newUpdater(parts{
		cluster: c, vpas: client, replicaSets: replicaSets, pods: pods, flags: &q.Flags, processor: processor,
		calculators: []patch.Calculator{
			inplace.NewResourceInPlaceUpdatesCalculator(provider),
			inplace.NewInPlaceUpdatedCalculator(),
			inplace.NewUnboostAnnotationCalculator(),
		},
	})
	return &host{
		cluster: c, vpas: vpas, updater: updater,
		replicaSets: replicaSets.Apps().V1().ReplicaSets().Informer().GetStore(),
		pods:        pods.Core().V1().Pods().Informer().GetStore(),
		admission:   patch.NewResourceUpdatesCalculator(provider, resource.QuantityValue{}),
	}, err
}

// decide runs the updater once, if it has a time, and asks the admission controller about each pod.
func (h *host) decide(q *decideRequest) (*answer, error) {
	h.cluster.clear()
	if q.Now != nil {
		if err := h.run(q); err != nil {
			return nil, err
		}
	}
	a := &answer{}
	for _, one := range q.Cases {
		r := result{Updates: h.cluster.updates[one.VPA.Namespace]}
		for _, pod := range one.Pods {
			patches, err := h.admission.CalculatePatches(pod, one.VPA)
			if err != nil {
				return nil, err
			}
			r.Admissions = append(r.Admissions, patches)
		}
		a.Cases = append(a.Cases, r)
	}
	return a, nil
}

// run runs the updater once, at exactly the time of the request.
func (h *host) run(q *decideRequest) error {
	time.Sleep(time.Until(*q.Now))
	var vpas []*vpa_types.VerticalPodAutoscaler
	var replicaSets, pods []any
	for _, one := range q.Cases {
		vpas = append(vpas, one.VPA)
		for _, set := range one.ReplicaSets {
			replicaSets = append(replicaSets, set)
		}
		for _, pod := range one.Pods {
			pods = append(pods, pod)
		}
	}
	if err := h.vpas.set(vpas); err != nil {
		return err
	}
	if err := h.replicaSets.Replace(replicaSets, ""); err != nil {
		return err
	}
	if err := h.pods.Replace(pods, ""); err != nil {
		return err
	}
	if now := time.Now(); !now.Equal(*q.Now) {
		return fmt.Errorf("it is %v, after the time of the run, %v", now, *q.Now)
	}
	h.updater.RunOnce(context.Background())
	return nil
}

// parts are the components of an updater.
type parts struct {
	cluster     *cluster
	vpas        *vpa_clientset.Clientset
	replicaSets informers.SharedInformerFactory
	pods        informers.SharedInformerFactory
	flags       *flags
	processor   vpa_api_util.RecommendationProcessor
	calculators []patch.Calculator
}

// noRateLimit is a flag of the updater.
const noRateLimit = -1

// fetcher finds what the cluster's API would: each VPA selects the pods with the label app, whose
// value is the name of its target; and each ReplicaSet belongs to the Deployment of that name.
type fetcher struct{}

func (fetcher) Fetch(_ context.Context, vpa *vpa_types.VerticalPodAutoscaler) (labels.Selector, error) {
	return labels.SelectorFromSet(labels.Set{"app": vpa.Spec.TargetRef.Name}), nil
}

func (fetcher) FindTopMostWellKnownOrScalable(
	_ context.Context, key *controllerfetcher.ControllerKeyWithAPIVersion,
) (*controllerfetcher.ControllerKeyWithAPIVersion, error) {
	top := *key
	top.Kind, top.Name = "Deployment", deployment
	return &top, nil
}
