package lockstep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// queued is a controller with a work queue and two workers. A reconcile of a key reads a metric and the
// scale of the Deployment with its name.
func queued(keys ...string) func(context.Context, *Run) error {
	return func(ctx context.Context, run *Run) error {
		client := kubernetes.NewForConfigOrDie(run.Config)
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "test"})
		for _, key := range keys {
			queue.AddAfter(key, 15*time.Second)
		}
		var workers sync.WaitGroup
		for range 2 {
			workers.Go(func() {
				for {
					key, quit := queue.Get()
					if quit {
						return
					}
					reconcileQueued(ctx, client, run.Namespace, key)
					queue.AddAfter(key, 15*time.Second)
					queue.Done(key)
				}
			})
		}
		<-ctx.Done()
		queue.ShutDown()
		workers.Wait()
		return nil
	}
}

func reconcileQueued(ctx context.Context, client kubernetes.Interface, namespace, key string) {
	deployments := client.AppsV1().Deployments(namespace)
	_, _ = deployments.GetScale(ctx, key, metav1.GetOptions{})
	_ = client.CoreV1().RESTClient().(*rest.RESTClient).Get().
		AbsPath("/apis/external.metrics.k8s.io/v1beta1/namespaces", namespace, "queue").Do(ctx).Error()
	_, _ = deployments.GetScale(ctx, key, metav1.GetOptions{})
}

const openTurns = `{"open":{"scenario":"s","namespace":"default","flags":{"sync-period":15000000000},` +
	`"featureGates":{},"targets":[],"withoutScale":[],"turns":true}}`

// pair creates an HPA with a target.
func pair(hpa, target string) string {
	return fmt.Sprintf(`{"setScale":{"resource":"deployments.apps","name":"%[2]s","replicas":2,`+
		`"statusReplicas":2,"selector":"app=%[2]s"}},{"createHpa":{"apiVersion":"autoscaling/v2",`+
		`"kind":"HorizontalPodAutoscaler","metadata":{"name":"%[1]s"},"spec":{"scaleTargetRef":`+
		`{"apiVersion":"apps/v1","kind":"Deployment","name":"%[2]s"},"maxReplicas":9}}}`, hpa, target)
}

// logged returns the log of all steps: each entry as its time, its kind and the HPA that it names.
func logged(answers []map[string]any) (log []string) {
	for _, answer := range answers {
		stepped, ok := answer["stepped"].(map[string]any)
		if !ok {
			continue
		}
		for _, entry := range stepped["log"].([]any) {
			for kind, body := range entry.(map[string]any) {
				if kind == "at" || kind == "namespace" {
					continue
				}
				at := time.Duration(entry.(map[string]any)["at"].(float64))
				line := fmt.Sprintf("%s %s", at, kind)
				if hpa, ok := body.(map[string]any)["hpa"]; ok {
					line += fmt.Sprint(" ", hpa)
				}
				log = append(log, line)
			}
		}
	}
	return log
}

// Two workers reconcile at once. Their requests wait for their turns, and are reported with their HPAs:
// a reconcile that waits for a slow metric goes on after the other one, in the order of the names.
func TestReconcilesTakeTurns(t *testing.T) {
	answers, _ := converse(t, "queued", openTurns,
		step(0, pair("second", "web")+","+pair("first", "api")),
		step(5*time.Second, `{"faults":{"slowMetrics":1000000000}}`), step(10*time.Second, ""), closing)
	want := []string{
		"7.5s reconcile second", "7.5s getScale", "7.5s reconcile first", "7.5s getScale",
		"8.5s reconcile first", "8.5s externalMetric", "8.5s getScale", "8.5s reconciled first",
		"8.5s reconcile second", "8.5s externalMetric", "8.5s getScale", "8.5s reconciled second",
	}
	if log := logged(answers); !slices.Equal(log, want) {
		t.Error(why(answers), strings.Join(log, "\n"))
	}
}

func TestReconcilesOfUnknownHPAsFail(t *testing.T) {
	answers, _ := converse(t, "queued", openTurns,
		step(0, pair("second", "web")+","+pair("first", "web")), step(10*time.Second, ""), closing)
	if !strings.Contains(why(answers), "a reconcile at t=7.5s neither reads nor writes an HPA") {
		t.Error(why(answers))
	}
}

// A change after the second read of the scale is made before the next request of any reconcile.
func TestChangesDuringAReconcile(t *testing.T) {
	during := `{"step":{"apply":[],"during":[{"after":"getScale","number":1,"apply":[{"setScale":` +
		`{"resource":"deployments.apps","name":"web","replicas":5,"statusReplicas":2,` +
		`"selector":"app=web"}},{"patchHpa":{"name":"first","patch":{"spec":{"maxReplicas":7}}}}]}],` +
		`"until":10000000000}}`
	answers, _ := converse(t, "queued", openTurns, step(0, pair("first", "web")), during, closing)
	text, _ := json.Marshal(answers)
	log, _ := json.Marshal(answers[len(answers)-2])
	first := strings.Index(string(log), `"replicas":2`)
	if second := strings.Index(string(log), `"replicas":5`); first < 0 || second < first {
		t.Error(string(text))
	}
	if !strings.Contains(string(log), `"stored":{"generation":2`) {
		t.Error("no answer to the patch:", string(text))
	}
}
