package apiserver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"kube-lockstep.dev/sdk/apiserver"
)

// received are the changes that a watch has received by now.
func received(w watch.Interface) (list []string) {
	for {
		synctest.Wait()
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return append(list, "end")
			}
			name := ""
			if m, err := meta.Accessor(e.Object); err == nil {
				name = m.GetName()
			}
			list = append(list, fmt.Sprint(e.Type, " ", name))
		default:
			return list
		}
	}
}

func TestWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		in := map[string]string{"in": "yes"}
		first := must(c.Create(ctx, configMap("a", in), metav1.CreateOptions{}))
		must(c.Create(ctx, configMap("b", nil), metav1.CreateOptions{}))
		now := must(c.Watch(ctx, metav1.ListOptions{LabelSelector: "in=yes"}))
		since := must(c.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion}))
		yes := true
		streamed := must(c.Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}))
		must(c.Patch(ctx, "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"in":"yes"}}}`),
			metav1.PatchOptions{}))
		must(c.Patch(ctx, "b", types.MergePatchType, []byte(`{"data":{"k":"v"}}`), metav1.PatchOptions{}))
		must(c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`),
			metav1.PatchOptions{}))
		_ = c.Delete(ctx, "b", metav1.DeleteOptions{})
		for _, got := range []struct {
			watch watch.Interface
			want  []string
		}{
			{now, []string{"ADDED a", "ADDED b", "MODIFIED b", "DELETED a", "DELETED b"}},
			{since, []string{"ADDED b", "MODIFIED b", "MODIFIED b", "MODIFIED a", "DELETED b"}},
			{streamed, []string{"ADDED a", "ADDED b", "BOOKMARK ",
				"MODIFIED b", "MODIFIED b", "MODIFIED a", "DELETED b"}},
		} {
			if list := received(got.watch); !slices.Equal(list, got.want) {
				t.Errorf("%v, not %v", list, got.want)
			}
			got.watch.Stop()
		}
	})
}

// A watch from a version that is no longer kept ends with an error.
func TestOldWatchesExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().ConfigMaps("default")
		m := must(c.Create(ctx, configMap("a", nil), metav1.CreateOptions{}))
		old := m.ResourceVersion
		for i := range 9000 {
			m.Data = map[string]string{"n": fmt.Sprint(i)}
			m = must(c.Update(ctx, m, metav1.UpdateOptions{}))
		}
		w := must(c.Watch(ctx, metav1.ListOptions{ResourceVersion: old}))
		if list := received(w); !slices.Equal(list, []string{"ERROR ", "end"}) {
			t.Error(list)
		}
	})
}

func TestInformersSyncAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, cancel := context.WithCancel(t.Context())
		must(client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
		}, metav1.CreateOptions{}))
		began := time.Now()
		factory := informers.NewSharedInformerFactory(client, 0)
		pods := factory.Core().V1().Pods().Informer()
		factory.Start(ctx.Done())
		synctest.Wait()
		if !pods.HasSynced() || len(pods.GetStore().List()) != 1 || time.Since(began) != 0 {
			t.Error("not synchronized at", time.Since(began))
		}
		cancel()
		factory.Shutdown()
	})
}

func TestLeaderElection(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, cancel := context.WithCancel(t.Context())
		leads := 0
		run := func(identity string) {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Name: "l", Namespace: "default"},
					Client:    client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
				},
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leads++ }, OnStoppedLeading: func() {},
				},
			})
		}
		go run("a")
		go run("b")
		time.Sleep(time.Hour)
		if leads != 1 {
			t.Error(leads, "leaders")
		}
		cancel()
		synctest.Wait()
	})
}

// An event is one object in both groups, and two events at one instant are two objects.
func TestEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, client *kubernetes.Clientset) {
		ctx, c := t.Context(), client.CoreV1().Events("default")
		e := &corev1.Event{Message: "hello", Reason: "R"}
		e.Name, e.InvolvedObject = "web.1", corev1.ObjectReference{Kind: "Pod", Name: "web"}
		one := must(c.Create(ctx, e, metav1.CreateOptions{}))
		two := must(c.Create(ctx, e, metav1.CreateOptions{}))
		if one.Name == two.Name {
			t.Error("the second event has the name of the first")
		}
		other := client.EventsV1().Events("default")
		seen := must(other.Get(ctx, one.Name, metav1.GetOptions{}))
		if seen.Note != "hello" || seen.Regarding.Name != "web" {
			t.Errorf("%+v", seen)
		}
		n := &eventsv1.Event{Note: "other", ReportingController: "c"}
		n.Name = "new"
		must(other.Create(ctx, n, metav1.CreateOptions{}))
		if seen := must(c.Get(ctx, "new", metav1.GetOptions{})); seen.Message != "other" ||
			seen.ReportingController != "c" {
			t.Errorf("%+v", seen)
		}
	})
}
