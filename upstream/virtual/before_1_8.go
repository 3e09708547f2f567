//go:build !k1.8

package virtual

import (
	"time"

	eventclient "k8s.io/client-go/kubernetes/typed/core/v1"
	clientv1 "k8s.io/client-go/pkg/api/v1"
	"k8s.io/client-go/tools/cache"
	corev1 "k8s.io/kubernetes/pkg/api/v1"
	autoscalingv1 "k8s.io/kubernetes/pkg/apis/autoscaling/v1"
	autoscalingv2alpha1 "k8s.io/kubernetes/pkg/apis/autoscaling/v2alpha1"
	extensions "k8s.io/kubernetes/pkg/apis/extensions/v1beta1"
	generated "k8s.io/kubernetes/pkg/client/clientset_generated/clientset"
	autoscalingclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/autoscaling/v1"
	coreclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/core/v1"
	scaleclient "k8s.io/kubernetes/pkg/client/clientset_generated/clientset/typed/extensions/v1beta1"
	"k8s.io/kubernetes/pkg/client/informers/informers_generated/externalversions"
	autoscalinglisters "k8s.io/kubernetes/pkg/client/listers/autoscaling/v1"
)

type (
	clientInterface  = generated.Interface
	coreInterface    = coreclient.CoreV1Interface
	podInterface     = coreclient.PodInterface
	eventInterface   = eventclient.EventInterface
	serviceInterface = coreclient.ServiceInterface
)

// eventsGetter creates the client for the controller's events, whose type is in another module.
type eventsGetter struct{ clientset }

func (e eventsGetter) Events(string) eventInterface {
	return events{cluster: e.cluster, stopped: e.stopped}
}

// The API types. They have been in a separate module since Kubernetes 1.8. The event recorder uses
// another copy of them.
type (
	ConditionStatus = corev1.ConditionStatus
	Container       = corev1.Container
	Event           = clientv1.Event
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
func copyOf[T object](o T) T {
	made, err := apiScheme.DeepCopy(o)
	if err != nil {
		panic(err)
	}
	return made.(T)
}

type (
	extensionsScale = extensions.Scale
	scaleInterface  = scaleclient.ScaleInterface
	scalesGetter    = scaleclient.ScalesGetter
)

type (
	clientHPAList  = autoscalingv1.HorizontalPodAutoscalerList
	hpaInterface   = autoscalingclient.HorizontalPodAutoscalerInterface
	hpaClientGroup = autoscalingclient.AutoscalingV1Interface
)

func (c clientset) AutoscalingV1() hpaClientGroup { return c.autoscaling() }

// newHPAInformer takes the informer from a factory, the only way to get it. It indexes by
// namespace.
func newHPAInformer(client clientset, _ cache.Indexers) hpaInformer {
	factory := externalversions.NewSharedInformerFactory(client, factoryResync)
	return hpaInformer{factory.Autoscaling().V1().HorizontalPodAutoscalers().Informer()}
}

func (i hpaInformer) Lister() autoscalinglisters.HorizontalPodAutoscalerLister {
	return autoscalinglisters.NewHorizontalPodAutoscalerLister(i.GetIndexer())
}

// retryDuration is zero: up to Kubernetes 1.7 client-go does not retry updates.
const retryDuration time.Duration = 0

// retryWait does nothing, because there are no retries.
func retryWait(bool) {}

type (
	// shownHPA is an HPA in the version of responses.
	shownHPA = autoscalingv2alpha1.HorizontalPodAutoscaler
	// shownStatus is a status in the version of responses.
	shownStatus = autoscalingv2alpha1.HorizontalPodAutoscalerStatus
)

var shownVersion = autoscalingv2alpha1.SchemeGroupVersion
