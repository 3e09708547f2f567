//go:build k1.8

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

type (
	clientInterface  = kubernetes.Interface
	coreInterface    = coreclient.CoreV1Interface
	podInterface     = coreclient.PodInterface
	serviceInterface = coreclient.ServiceInterface
	eventInterface   = coreclient.EventInterface
)

func (c coreV1) Events(string) eventInterface {
	return events{cluster: c.cluster, stopped: c.stopped}
}

// The API types. Up to Kubernetes 1.7 they are in another module.
type (
	ConditionStatus = corev1.ConditionStatus
	Container       = corev1.Container
	Event           = corev1.Event
	ObjectReference = corev1.ObjectReference
	Pod             = corev1.Pod
	PodCondition    = corev1.PodCondition
	PodList         = corev1.PodList
	PodPhase        = corev1.PodPhase
	PodSpec         = corev1.PodSpec
	PodStatus       = corev1.PodStatus
	ResourceList    = corev1.ResourceList
	ResourceName    = corev1.ResourceName

	// HPAv1 is an HPA of autoscaling/v1.
	HPAv1 = autoscalingv1.HorizontalPodAutoscaler
)

const PodReady = corev1.PodReady

// versionV1 is the version of HPAv1.
var versionV1 = autoscalingv1.SchemeGroupVersion

// copyOf is a deep copy of an object.
func copyOf[T object](o T) T { return o.DeepCopyObject().(T) }

type (
	ContainerMetrics = metricsapi.ContainerMetrics
	PodMetrics       = metricsapi.PodMetrics
	PodMetricsList   = metricsapi.PodMetricsList
	usageList        = ResourceList
	usageName        = ResourceName
)

// retryDuration is the wait between attempts to update the scale.
var retryDuration = retry.DefaultRetry.Duration

// Upstream adds up to 10% random jitter to the waits between attempts to update the scale. A fixed
// wait, which is one of the possible waits, makes times predictable.
func init() { retry.DefaultRetry.Jitter = 0 }

// retryWait selects where the wait between attempts takes place: in upstream's code; or, so that
// other reconciles can proceed meanwhile, in the client when it is called again.
func retryWait(byTurns bool) {
	retry.DefaultRetry.Duration = retryDuration
	if byTurns {
		retry.DefaultRetry.Duration = 0
	}
}
