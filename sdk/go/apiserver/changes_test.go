package apiserver_test

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
)

// A request has the changes that it made, also those of other objects. All others are reported to the
// observer of the server.
func TestChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, s *apiserver.Server, client *kubernetes.Clientset) {
		var ofRequests, others []string
		text := func(c apiserver.Change) string {
			return fmt.Sprintf("%s %t->%t", c.Name, c.Before != nil, c.After != nil)
		}
		s.Changed = func(c apiserver.Change) { others = append(others, text(c)) }
		s.After = func(c *apiserver.Request) {
			for _, change := range c.Changes {
				ofRequests = append(ofRequests, c.Verb+" "+text(change))
			}
		}
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		owner := must(c.Create(ctx, configMap("owner", nil), metav1.CreateOptions{}))
		owned := configMap("owned", nil)
		owned.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
		}
		must(c.Create(ctx, owned, metav1.CreateOptions{}))
		must(c.Update(ctx, owner, metav1.UpdateOptions{})) // changes nothing
		if err := c.Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		gr := schema.GroupResource{Resource: "configmaps"}
		must(s.Create(gr, "default", map[string]any{"metadata": map[string]any{"name": "by-user"}}))
		if err := s.RequestDeletion(gr, "default", "by-user"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"create owner false->true", "create owned false->true", "delete owner true->false",
			"delete owned true->false",
		}
		if !slices.Equal(ofRequests, want) {
			t.Errorf("of requests: %q", ofRequests)
		}
		if want := []string{"by-user false->true", "by-user true->false"}; !slices.Equal(others, want) {
			t.Errorf("others: %q", others)
		}
	})
}

func TestNewObjectsOfDeletedOwnersAreCollected(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		late := configMap("late", nil)
		late.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: types.UID("gone")},
		}
		must(c.Create(ctx, late, metav1.CreateOptions{}))
		if _, err := c.Get(ctx, "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error("not collected:", err)
		}
	})
}
