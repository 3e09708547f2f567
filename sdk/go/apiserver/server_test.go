package apiserver_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
)

// inBubble calls a test with a new server in a bubble.
func inBubble(t *testing.T, f func(*testing.T, *apiserver.Server, *kubernetes.Clientset)) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New()
		f(t, s, kubernetes.NewForConfigOrDie(s.Config("test")))
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name, d.Namespace, d.Spec.Replicas = name, "default", &replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return d
}

func configMap(
	name string,
	labels map[string]string,
	owners ...metav1.OwnerReference,
) *corev1.ConfigMap {
	m := &corev1.ConfigMap{}
	m.Name, m.Labels, m.OwnerReferences = name, labels, owners
	return m
}

func TestObjectsAreCreatedReadUpdatedAndDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		d := must(c.Create(ctx, deployment("web", 3), metav1.CreateOptions{}))
		if d.Generation != 1 || d.UID == "" || d.ResourceVersion == "" || d.CreationTimestamp.IsZero() {
			t.Errorf("created: %+v", d.ObjectMeta)
		}
		_, err := c.Create(ctx, deployment("web", 3), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			t.Error("created twice:", err)
		}
		*d.Spec.Replicas = 4
		d.Status.Replicas = 9
		updated := must(c.Update(ctx, d, metav1.UpdateOptions{}))
		if updated.Generation != 2 || updated.Status.Replicas != 0 {
			t.Errorf("an update of the spec: generation %d, status %+v", updated.Generation, updated.Status)
		}
		if _, err := c.Update(ctx, d, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Error("an update of an old version:", err)
		}
		updated.Status.Replicas, *updated.Spec.Replicas = 4, 7
		status := must(c.UpdateStatus(ctx, updated, metav1.UpdateOptions{}))
		if status.Generation != 2 || status.Status.Replicas != 4 || *status.Spec.Replicas != 4 {
			t.Errorf("an update of the status: %+v", status)
		}
		again := must(c.UpdateStatus(ctx, status, metav1.UpdateOptions{}))
		if again.ResourceVersion != status.ResourceVersion {
			t.Error("an update without a change has a new version")
		}
		if err := c.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := c.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error("deleted:", err)
		}
	})
}

func TestNamesAreGenerated(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		c := client.CoreV1().ConfigMaps("default")
		names := map[string]bool{}
		for range 3 {
			m := configMap("", nil)
			m.GenerateName = "m-"
			names[must(c.Create(t.Context(), m, metav1.CreateOptions{})).Name] = true
		}
		if len(names) != 3 {
			t.Error(names)
		}
		_, err := c.Create(t.Context(), configMap("", nil), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Error("without a name:", err)
		}
	})
}

func TestDryRunsChangeNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		dry := []string{metav1.DryRunAll}
		must(c.Create(ctx, deployment("dry", 1), metav1.CreateOptions{DryRun: dry}))
		must(c.Create(ctx, deployment("web", 1), metav1.CreateOptions{}))
		changed := must(c.Update(ctx, deployment("web", 5), metav1.UpdateOptions{DryRun: dry}))
		if err := c.Delete(ctx, "web", metav1.DeleteOptions{DryRun: dry}); err != nil {
			t.Error(err)
		}
		list := must(c.List(ctx, metav1.ListOptions{}))
		if *changed.Spec.Replicas != 5 || len(list.Items) != 1 || *list.Items[0].Spec.Replicas != 1 {
			t.Errorf("%+v, %+v", changed.Spec, list.Items)
		}
	})
}

func TestListsAreSelectedAndPaged(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		for i := range 5 {
			labels := map[string]string{"even": fmt.Sprint(i%2 == 0)}
			must(c.Create(ctx, configMap(fmt.Sprint("m", i), labels), metav1.CreateOptions{}))
		}
		must(
			client.CoreV1().ConfigMaps("other").Create(ctx, configMap("m9", nil), metav1.CreateOptions{}),
		)
		count := func(o metav1.ListOptions) int { return len(must(c.List(ctx, o)).Items) }
		if n := count(metav1.ListOptions{LabelSelector: "even=true"}); n != 3 {
			t.Error("by label:", n)
		}
		if n := count(metav1.ListOptions{FieldSelector: "metadata.name=m1"}); n != 1 {
			t.Error("by field:", n)
		}
		if n := len(must(client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})).Items); n != 6 {
			t.Error("of all namespaces:", n)
		}
		first := must(c.List(ctx, metav1.ListOptions{Limit: 2, LabelSelector: "even=true"}))
		must(c.Create(ctx, configMap("n", nil), metav1.CreateOptions{}))
		second := must(c.List(ctx, metav1.ListOptions{
			Limit: 2, LabelSelector: "even=true", Continue: first.Continue,
		}))
		if len(first.Items) != 2 || len(second.Items) != 1 || second.Continue != "" ||
			first.ResourceVersion != second.ResourceVersion {
			t.Errorf("pages: %+v, %+v", first.ListMeta, second.ListMeta)
		}
		_, err := c.List(ctx, metav1.ListOptions{LabelSelector: "a=b=c"})
		if !apierrors.IsBadRequest(err) {
			t.Error("an invalid selector:", err)
		}
	})
}

func TestPatches(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		old := must(c.Create(ctx, deployment("web", 3), metav1.CreateOptions{}))
		for i, p := range []struct {
			kind types.PatchType
			text string
		}{
			{types.MergePatchType, `{"spec":{"replicas":4}}`},
			{types.StrategicMergePatchType, `{"spec":{"replicas":5}}`},
			{types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":6}]`},
		} {
			d := must(c.Patch(ctx, "web", p.kind, []byte(p.text), metav1.PatchOptions{}))
			if int(*d.Spec.Replicas) != 4+i || int(d.Generation) != 2+i {
				t.Errorf("%s: replicas %d, generation %d", p.kind, *d.Spec.Replicas, d.Generation)
			}
		}
		stale := fmt.Sprintf(
			`{"metadata":{"resourceVersion":%q},"spec":{"replicas":1}}`,
			old.ResourceVersion,
		)
		_, err := c.Patch(ctx, "web", types.MergePatchType, []byte(stale), metav1.PatchOptions{})
		if !apierrors.IsConflict(err) {
			t.Error("a patch of an old version:", err)
		}
		_, err = c.Patch(ctx, "web", types.JSONPatchType, []byte(`[{"op":"remove","path":"/no/where"}]`),
			metav1.PatchOptions{})
		if status := apierrors.ReasonForError(err); apierrors.IsInternalError(err) || err == nil {
			t.Error("a patch that can't be applied:", status, err)
		}
	})
}

func TestScale(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		must(c.Create(ctx, deployment("web", 3), metav1.CreateOptions{}))
		scale := must(c.GetScale(ctx, "web", metav1.GetOptions{}))
		if scale.Spec.Replicas != 3 || scale.Status.Selector != "app=web" {
			t.Errorf("%+v", scale)
		}
		scale.Spec.Replicas = 5
		must(c.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}))
		_, err := c.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			t.Error("an update of an old version:", err)
		}
		must(c.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`),
			metav1.PatchOptions{}, "scale"))
		d := must(c.Get(ctx, "web", metav1.GetOptions{}))
		if *d.Spec.Replicas != 9 || d.Generation != 3 {
			t.Errorf("%d replicas, generation %d", *d.Spec.Replicas, d.Generation)
		}
		scale.ResourceVersion, scale.Spec.Replicas = "", -1
		if _, err := c.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Error("negative replicas:", err)
		}
	})
}

func TestFieldsAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.AppsV1().Deployments("default")
		must(c.Create(ctx, deployment("web", 3), metav1.CreateOptions{}))
		patch := func(text string, o metav1.PatchOptions) error {
			_, err := c.Patch(ctx, "web", types.MergePatchType, []byte(text), o)
			return err
		}
		err := patch(`{"spec":{"replicas":"many"}}`, metav1.PatchOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Error("a wrong type:", err)
		}
		unknown := `{"spec":{"replica":3}}`
		if err := patch(unknown, metav1.PatchOptions{}); err != nil {
			t.Error("an unknown field is dropped:", err)
		}
		err = patch(unknown, metav1.PatchOptions{FieldValidation: "Strict"})
		if !apierrors.IsBadRequest(err) {
			t.Error("an unknown field, strict:", err)
		}
	})
}

// What is not served is answered with an error that names it.
func TestUnservedRequestsAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *apiserver.Server, client *kubernetes.Clientset) {
		ctx := context.Background()
		_, err := client.StorageV1().StorageClasses().Get(ctx, "b", metav1.GetOptions{})
		want := "the API server in memory does not serve storageclasses of storage.k8s.io/v1"
		if fmt.Sprint(err) != want {
			t.Error(err)
		}
		err = client.CoreV1().
			RESTClient().
			Get().
			AbsPath("/api/v1/namespaces/a/pods/b/log").
			Do(ctx).
			Error()
		if fmt.Sprint(err) != "the API server in memory does not serve the subresource log of pods" {
			t.Error(err)
		}
		err = client.CoreV1().RESTClient().Get().AbsPath("/apis/no.such/v1/things").Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func TestRequestsAreReportedInOrderByController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New()
		var seen []string
		s.Before = func(c *apiserver.Request) error {
			if c.Name == "slow" {
				time.Sleep(time.Second)
			}
			if c.Name == "broken" {
				return apierrors.NewServiceUnavailable("broken")
			}
			return nil
		}
		s.After = func(c *apiserver.Request) {
			seen = append(seen, fmt.Sprint(c.Controller, " ", c.Verb, " ", c.Name, " ", c.Err != nil))
		}
		one := kubernetes.NewForConfigOrDie(s.Config("one")).CoreV1().ConfigMaps("default")
		other := kubernetes.NewForConfigOrDie(s.Config("other")).CoreV1().ConfigMaps("default")
		go func() { _, _ = one.Get(t.Context(), "slow", metav1.GetOptions{}) }()
		synctest.Wait()
		must(other.Create(t.Context(), configMap("m", nil), metav1.CreateOptions{}))
		_, err := other.Get(t.Context(), "broken", metav1.GetOptions{})
		if !apierrors.IsServiceUnavailable(err) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		want := "[other create m false other get broken true one get slow true]"
		if fmt.Sprint(seen) != want {
			t.Error(seen)
		}
	})
}

func TestProtobufRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := apiserver.New().Config("test")
		cfg.ContentType = "application/vnd.kubernetes.protobuf"
		cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		c := kubernetes.NewForConfigOrDie(cfg).AppsV1().Deployments("default")
		d := must(c.Create(t.Context(), deployment("web", 3), metav1.CreateOptions{}))
		*d.Spec.Replicas = 4
		d = must(c.Update(t.Context(), d, metav1.UpdateOptions{}))
		if *d.Spec.Replicas != 4 || d.Generation != 2 {
			t.Error(d)
		}
	})
}
