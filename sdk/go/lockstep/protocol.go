package lockstep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// request is a line of the input: one of the fields is set.
type request struct {
	Open  *openRequest `json:"open"`
	Step  *stepRequest `json:"step"`
	Close *struct{}    `json:"close"`
}

type openRequest struct {
	Scenario     string                     `json:"scenario"`
	Namespace    string                     `json:"namespace"`
	Flags        map[string]json.RawMessage `json:"flags"`
	FeatureGates map[string]bool            `json:"featureGates"`
	Targets      []kind                     `json:"targets"`
	WithoutScale []kind                     `json:"withoutScale"`
	Turns        bool                       `json:"turns"`
	SentEvents   bool                       `json:"sentEvents"`
	Disturbances []disturbance              `json:"disturbances"`
	Objects      []json.RawMessage          `json:"objects"`
}

// kind is a kind of scaled objects.
type kind struct{ Group, Version, Kind, Resource string }

type stepRequest struct {
	Apply  []change      `json:"apply"`
	During []during      `json:"during"`
	Until  time.Duration `json:"until"`
}

// during are changes right after a request of the controller.
type during struct {
	After  string   `json:"after"`
	Number int      `json:"number"`
	Apply  []change `json:"apply"`
}

// change is a change of the cluster: one of the fields is set.
type change struct {
	CreateHPA      json.RawMessage `json:"createHpa"`
	PatchHPA       *patchHPA       `json:"patchHpa"`
	DeleteHPA      *named          `json:"deleteHpa"`
	SetScale       *setScale       `json:"setScale"`
	DeleteScale    *named          `json:"deleteScale"`
	PodTemplate    *podTemplate    `json:"podTemplate"`
	SetPods        []podState      `json:"setPods"`
	DeletePods     []string        `json:"deletePods"`
	PodMetrics     *podMetrics     `json:"podMetrics"`
	PodsMetric     *seriesMetric   `json:"podsMetric"`
	ObjectMetric   *seriesMetric   `json:"objectMetric"`
	ExternalMetric *seriesMetric   `json:"externalMetric"`
	Faults         *faults         `json:"faults"`
	InNamespace    *inNamespace    `json:"inNamespace"`
	ApplyObject    json.RawMessage `json:"applyObject"`
	PatchObject    *objectEdit     `json:"patchObject"`
	DeleteObject   *objectRef      `json:"deleteObject"`
	restart        bool
}

// UnmarshalJSON refuses changes that this version of the package does not know.
func (c *change) UnmarshalJSON(text []byte) error {
	if string(text) == `"restartController"` {
		c.restart = true
		return nil
	}
	type plain change
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(c)); err != nil {
		return fmt.Errorf("the SDK does not know the change %.200s: %w", text, err)
	}
	return nil
}

type patchHPA struct {
	Name  string          `json:"name"`
	Patch json.RawMessage `json:"patch"`
}

type named struct{ Resource, Name string }

type inNamespace struct {
	Namespace string
	Change    *change
}

type setScale struct {
	Resource, Name, Selector string
	Replicas                 *int64
	StatusReplicas           int64
}

type podTemplate struct {
	Name   string
	Labels map[string]string
	Spec   struct {
		Containers, InitContainers []container
		Requests, Overhead         map[string]string
	}
}

type container struct {
	Name     string
	Requests map[string]string
	Sidecar  bool
}

type podState struct {
	Name, Template, Phase        string
	StartTime, DeletionTimestamp *time.Duration
	Ready                        *struct {
		Status             string
		LastTransitionTime time.Duration
	}
}

type podMetrics struct {
	Timestamp, Window *time.Duration
	Set               []usage
	Delete            []string
}

// usage is the metrics of a pod.
type usage struct {
	Pod, Template string
	Timestamp     *time.Duration
	Containers    []struct {
		Name  string
		Usage [][2]string
	}
}

// seriesMetric is a metric of pods (with Values), of an object or of nothing in the cluster (with
// Series).
type seriesMetric struct {
	Metric, Kind, Name string
	Labels             map[string]string
	Values, Series     []sample
	Error              *apiError
}

type sample struct {
	Pod, Template, Value string
	Labels               map[string]string
	Timestamp            time.Duration
	Window               *time.Duration
}

type faults struct {
	ListPodMetrics, GetScale, UpdateScale, UpdateStatus *apiError
	SlowMetrics                                         time.Duration
	CacheLag                                            time.Duration
}

type apiError struct {
	Code            int32
	Reason, Message string
}

// entry is an action of the controller.
type entry struct {
	at        time.Duration
	namespace *string // of requests
	kind      string
	body      any
	turn      *turn // of the reconcile that it belongs to
}

// MarshalJSON writes the entry as a member of its kind.
func (e entry) MarshalJSON() ([]byte, error) {
	members := map[string]any{"at": int64(e.at), e.kind: e.body}
	if e.namespace != nil {
		members["namespace"] = *e.namespace
	}
	return json.Marshal(members)
}

type scaleRead struct {
	Resource       string `json:"resource"`
	Name           string `json:"name"`
	Replicas       *int64 `json:"replicas,omitempty"`
	StatusReplicas *int64 `json:"statusReplicas,omitempty"`
	Error          string `json:"error,omitempty"`
}

type scaleWrite struct {
	Resource       string `json:"resource"`
	Name           string `json:"name"`
	APIVersion     string `json:"apiVersion"`
	Replicas       int64  `json:"replicas"`
	StatusReplicas int64  `json:"statusReplicas"`
	Selector       string `json:"selector"`
	Error          string `json:"error,omitempty"`
}

type query struct {
	Metric         string  `json:"metric,omitempty"`
	Kind           string  `json:"kind,omitempty"`
	Name           string  `json:"name,omitempty"`
	Selector       *string `json:"selector,omitempty"`
	MetricSelector *string `json:"metricSelector,omitempty"`
	Value          *string `json:"value,omitempty"`
	Items          *int    `json:"items,omitempty"`
	Error          string  `json:"error,omitempty"`
}

type statusWrite struct {
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
	Status     any    `json:"status"`
	Error      string `json:"error,omitempty"`
}

type event struct {
	HPA     string `json:"hpa"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type sentEvent struct {
	event
	Verb             string `json:"verb"`
	Count            int64  `json:"count"`
	ObjectKind       string `json:"objectKind"`
	ObjectAPIVersion string `json:"objectApiVersion"`
	ObjectUID        string `json:"objectUid"`
	Component        string `json:"component"`
	EventName        string `json:"eventName"`
	FirstTimestamp   string `json:"firstTimestamp"`
	LastTimestamp    string `json:"lastTimestamp"`
}
