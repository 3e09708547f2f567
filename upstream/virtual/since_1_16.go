//go:build k1.16

package virtual

import corev1 "k8s.io/api/core/v1"

// setOverhead sets the overhead of a pod's runtime class.
func setOverhead(spec *corev1.PodSpec, overhead corev1.ResourceList) { spec.Overhead = overhead }
