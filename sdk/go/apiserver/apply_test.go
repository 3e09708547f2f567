package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
)

func TestServerSideApply(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		web := func(n int32) *applyapps.DeploymentApplyConfiguration {
			return applyapps.Deployment("web", "default").
				WithSpec(applyapps.DeploymentSpec().WithReplicas(n))
		}
		must(c.Apply(ctx, web(3), metav1.ApplyOptions{FieldManager: "a"}))
		_, err := c.Apply(ctx, web(4), metav1.ApplyOptions{FieldManager: "b"})
		if !apierrors.IsConflict(err) {
			t.Error("another manager:", err)
		}
		d := must(c.Apply(ctx, web(5), metav1.ApplyOptions{FieldManager: "b", Force: true}))
		if *d.Spec.Replicas != 5 || len(d.ManagedFields) != 1 {
			t.Errorf("%d replicas, managed by %+v", *d.Spec.Replicas, d.ManagedFields)
		}
		// A write that is no apply takes over the field.
		must(c.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`),
			metav1.PatchOptions{FieldManager: "c"}))
		_, err = c.Apply(ctx, web(7), metav1.ApplyOptions{FieldManager: "b"})
		if !apierrors.IsConflict(err) {
			t.Error("after a patch:", err)
		}
	})
}

// Lists are merged by their keys, and fields that are no longer applied are removed.
func TestAppliedListsAreMerged(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().Pods("default")
		with := func(names ...string) *applycore.PodApplyConfiguration {
			spec := applycore.PodSpec()
			for _, name := range names {
				spec.WithContainers(applycore.Container().WithName(name).WithImage("image"))
			}
			return applycore.Pod("p", "default").WithSpec(spec)
		}
		must(c.Apply(ctx, with("a", "b"), metav1.ApplyOptions{FieldManager: "one"}))
		must(c.Apply(ctx, with("c"), metav1.ApplyOptions{FieldManager: "other"}))
		p := must(c.Apply(ctx, with("b"), metav1.ApplyOptions{FieldManager: "one"}))
		names := func(p *corev1.Pod) (text string) {
			for _, c := range p.Spec.Containers {
				text += c.Name
			}
			return text
		}
		if names(p) != "bc" {
			t.Error(names(p))
		}
	})
}
