package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
)

func TestFinalizersDelayDeletions(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		m := configMap("m", nil)
		m.Finalizers = []string{"example.com/wait"}
		must(c.Create(ctx, m, metav1.CreateOptions{}))
		_ = c.Delete(ctx, "m", metav1.DeleteOptions{})
		if m = must(c.Get(ctx, "m", metav1.GetOptions{})); m.DeletionTimestamp == nil ||
			m.Generation != 2 {
			t.Error("not marked, or not as a new generation:", m)
		}
		m.Finalizers = nil
		must(c.Update(ctx, m, metav1.UpdateOptions{}))
		if _, err := c.Get(ctx, "m", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error("not deleted:", err)
		}
	})
}

func TestPreconditionsOfDeletions(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		must(c.Create(ctx, configMap("m", nil), metav1.CreateOptions{}))
		other := types.UID("other")
		err := c.Delete(ctx, "m", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		if !apierrors.IsConflict(err) {
			t.Error(err)
		}
	})
}

func TestDependentsOfDeletedOwners(t *testing.T) {
	for _, test := range []struct {
		policy metav1.DeletionPropagation
		// What is left right after the deletion of the owner, and after the dependent's finalizer is
		// removed.
		left, later int
		orphaned    bool
	}{
		{policy: metav1.DeletePropagationBackground, left: 1, later: 0},
		{policy: metav1.DeletePropagationForeground, left: 2, later: 0},
		{policy: metav1.DeletePropagationOrphan, left: 2, later: 2, orphaned: true},
	} {
		inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
			ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
			owner := must(c.Create(ctx, configMap("owner", nil), metav1.CreateOptions{}))
			reference := metav1.OwnerReference{
				APIVersion: "v1",
				Kind:       "ConfigMap",
				Name:       "owner",
				UID:        owner.UID,
			}
			must(c.Create(ctx, configMap("free", nil, reference), metav1.CreateOptions{}))
			held := configMap("held", nil, reference)
			held.Finalizers = []string{"example.com/wait"}
			must(c.Create(ctx, held, metav1.CreateOptions{}))
			if err := c.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &test.policy}); err != nil {
				t.Fatal(err)
			}
			count := func() int { return len(must(c.List(ctx, metav1.ListOptions{})).Items) }
			if n := count(); n != test.left {
				t.Errorf("%s: %d objects are left", test.policy, n)
			}
			held = must(c.Get(ctx, "held", metav1.GetOptions{}))
			if (len(held.OwnerReferences) == 0) != test.orphaned {
				t.Errorf("%s: owners %v", test.policy, held.OwnerReferences)
			}
			held.Finalizers = nil
			must(c.Update(ctx, held, metav1.UpdateOptions{}))
			if n := count(); n != test.later {
				t.Errorf("%s: %d objects are left in the end", test.policy, n)
			}
		})
	}
}

func TestCollectionsAreDeletedBySelector(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().Pods("default")
		for _, name := range []string{"a", "b"} {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
			}
			must(c.Create(ctx, p, metav1.CreateOptions{}))
		}
		err := c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"})
		list := must(c.List(ctx, metav1.ListOptions{}))
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != "b" {
			t.Error(err, list.Items)
		}
	})
}
