//go:build k1.8

package virtual

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
)

// The API types of every release. Up to Kubernetes 1.7 they are elsewhere.
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
