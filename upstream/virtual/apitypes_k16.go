//go:build !k1.8

package virtual

import (
	clientv1 "k8s.io/client-go/pkg/api/v1"
	corev1 "k8s.io/kubernetes/pkg/api/v1"
	autoscalingv1 "k8s.io/kubernetes/pkg/apis/autoscaling/v1"
)

// The API types of every release. Only from Kubernetes 1.8 on they have a module of their own; the
// recorder of events has another copy of them.
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
