//go:build vpa1.8

package updater

import (
	corev1 "k8s.io/api/core/v1"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater/priority"
)

// newUpdater creates an updater that does not check the lease of the admission controller.
func newUpdater(p parts) (logic.Updater, error) {
	return logic.NewUpdater(
		p.cluster.kube, p.vpas, p.replicaSets, p.pods,
		p.flags.MinReplicas, noRateLimit, 1, float64(p.flags.EvictionTolerance),
		false, p.flags.SkipsDisruptionBudget, float64(p.flags.PodUpdateThreshold),
		p.flags.LifetimeThreshold, p.flags.EvictAfterOOMThreshold,
		"", "", 0,
		p.processor, priority.NewScalingDirectionPodEvictionAdmission(), fetcher{}, fetcher{},
		priority.NewProcessor(), corev1.NamespaceAll, nil, p.calculators,
	)
}
