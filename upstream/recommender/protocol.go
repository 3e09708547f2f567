package recommender

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

// protocol is the version of the protocol.
const protocol = 1

// request is one line of the input. Exactly one member is set.
type request struct {
	Open  *openRequest `json:"open"`
	Step  *stepRequest `json:"step"`
	Close *struct{}    `json:"close"`
}

// openRequest starts a scenario.
type openRequest struct {
	// Scenario is the name of the scenario, for messages.
	Scenario string `json:"scenario"`
	// Start is the time at which the recommender starts, in seconds of Unix time.
	Start int64 `json:"start"`
	// Flags are the recommender's flags, without the leading dashes.
	Flags map[string]string `json:"flags"`
	// Apply are the objects that exist when the recommender starts.
	Apply []change `json:"apply"`
	// History are the samples that a history provider returns. They are used if the flag `storage`
	// is `prometheus`.
	History []podHistory `json:"history"`
}

// stepRequest applies changes, then lets time pass. The recommender runs whenever it is due.
type stepRequest struct {
	Apply []change `json:"apply"`
	// Until is the end of the step, in nanoseconds since the first start of the recommender.
	Until int64 `json:"until"`
}

// change is one change of the cluster. Exactly one member is set.
type change struct {
	// SetVpa creates a VPA, or replaces all of an existing one except its status.
	SetVpa    *vpa_types.VerticalPodAutoscaler `json:"setVpa"`
	DeleteVpa *objectName                      `json:"deleteVpa"`
	// SetPod creates or replaces a pod.
	SetPod           *corev1.Pod                                `json:"setPod"`
	DeletePod        *objectName                                `json:"deletePod"`
	SetCheckpoint    *vpa_types.VerticalPodAutoscalerCheckpoint `json:"setCheckpoint"`
	DeleteCheckpoint *objectName                                `json:"deleteCheckpoint"`
	SetTarget        *target                                    `json:"setTarget"`
	DeleteTarget     *targetKey                                 `json:"deleteTarget"`
	// Event is an event of the cluster, such as an eviction.
	Event *corev1.Event `json:"event"`
	// SetMetrics replaces the response of the resource metrics API.
	SetMetrics *metricsResponse `json:"setMetrics"`
	// Restart replaces the recommender with a new one, whose first run is one interval later.
	Restart *struct{} `json:"restart"`
}

type objectName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type targetKey struct {
	Namespace  string `json:"namespace"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// target is an object to which a VPA can refer.
type target struct {
	targetKey
	// Selector selects the pods of the target.
	Selector string `json:"selector"`
	// Parent is the topmost controller above the target, if any.
	Parent *targetKey `json:"parent"`
	// Error is the reason why the topmost controller can't be found, if any.
	Error string `json:"error"`
}

// metricsResponse is a response of the resource metrics API: an error, or usage of pods.
type metricsResponse struct {
	Error string       `json:"error"`
	Items []podMetrics `json:"items"`
}

type podMetrics struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Timestamp is in seconds of Unix time.
	Timestamp  int64              `json:"timestamp"`
	Containers []containerMetrics `json:"containers"`
}

// containerMetrics is the usage of a container. A missing resource is empty.
type containerMetrics struct {
	Name   string `json:"name"`
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

type podHistory struct {
	Namespace  string                     `json:"namespace"`
	Name       string                     `json:"name"`
	Labels     map[string]string          `json:"labels"`
	Containers map[string][]historySample `json:"containers"`
}

type historySample struct {
	// At is in seconds of Unix time.
	At int64 `json:"at"`
	// Resource is `cpu`, in millicores, or `memory`, in bytes.
	Resource string `json:"resource"`
	Usage    int64  `json:"usage"`
}

// answer is one line of the output. Exactly one member is set.
type answer struct {
	Hello   *helloAnswer   `json:"hello,omitempty"`
	Opened  *openedAnswer  `json:"opened,omitempty"`
	Stepped *steppedAnswer `json:"stepped,omitempty"`
	Closed  *struct{}      `json:"closed,omitempty"`
	Failed  *failedAnswer  `json:"failed,omitempty"`
}

type helloAnswer struct {
	Protocol int    `json:"protocol"`
	Engine   string `json:"engine"`
	Release  string `json:"release"`
}

type openedAnswer struct {
	// Log contains the messages of the start.
	Log []logLine `json:"log"`
}

type steppedAnswer struct {
	Now  int64 `json:"now"`
	Runs []run `json:"runs"`
	// Log contains the messages of restarts.
	Log []logLine `json:"log"`
}

// run is one run of the recommender.
type run struct {
	// At is in nanoseconds since the first start of the recommender.
	At     int64     `json:"at"`
	Writes []write   `json:"writes"`
	Log    []logLine `json:"log"`
}

// write is one request of the recommender that changes an object. Exactly one of the last members
// is set.
type write struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Status is the written status of a VPA.
	Status json.RawMessage `json:"status,omitempty"`
	// Checkpoint is the written status of a checkpoint.
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	// Spec is the specification of a created checkpoint.
	Spec *vpa_types.VerticalPodAutoscalerCheckpointSpec `json:"spec,omitempty"`
	// Deleted is set if a checkpoint was deleted.
	Deleted bool `json:"deleted,omitempty"`
}

// logLine is a message that the recommender logs as an error, or always.
type logLine struct {
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
}

type failedAnswer struct {
	Why string `json:"why"`
}
