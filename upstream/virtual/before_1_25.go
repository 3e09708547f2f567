//go:build !k1.25

package virtual

import "k8s.io/kubernetes/pkg/apis/autoscaling"

// setSystemFields does nothing: up to Kubernetes 1.24 rest.BeforeCreate does it.
func setSystemFields(*autoscaling.HorizontalPodAutoscaler) {}
