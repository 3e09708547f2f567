package apiserver_test

import (
	"context"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
	"sigs.k8s.io/yaml"
)

// everyMetric is an HPA with all that autoscaling/v1 has no fields for.
const everyMetric = `
metadata: {name: web, annotations: {team: shop}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 9
  metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
  - {type: ContainerResource, containerResource: {name: cpu, container: app,
      target: {type: Utilization, averageUtilization: 70}}}
  - {type: Pods, pods: {metric: {name: rps, selector: {matchLabels: {verb: GET}}},
      target: {type: AverageValue, averageValue: "5"}}}
  - {type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: web},
      metric: {name: hits}, target: {type: Value, value: 2k}}}
  - {type: Object, object: {describedObject: {kind: Service, name: web}, metric: {name: hits},
      target: {type: AverageValue, averageValue: "7"}}}
  - {type: External, external: {metric: {name: queue},
      target: {type: AverageValue, averageValue: "3"}}}
  - {type: External, external: {metric: {name: queue}, target: {type: Value, value: "30"}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
  behavior:
    scaleUp: {stabilizationWindowSeconds: 30, selectPolicy: Min,
      policies: [{type: Pods, value: 2, periodSeconds: 60}]}
    scaleDown: {selectPolicy: Disabled, policies: [{type: Percent, value: 10, periodSeconds: 15}]}
status:
  currentReplicas: 2
  desiredReplicas: 3
  currentMetrics:
  - {type: External, external: {metric: {name: queue}, current: {value: "0", averageValue: "4"}}}
  - {type: Resource, resource: {name: cpu, current: {averageUtilization: 50, averageValue: 100m}}}
  conditions: [{type: AbleToScale, status: "True", reason: Fine}]
`

// An HPA of v2 is the same after a client of v1 has updated it.
func TestHPAsOfV1KeepWhatV2Has(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, c *kubernetes.Clientset) {
		ctx := context.Background()
		v1, v2 := c.AutoscalingV1().HorizontalPodAutoscalers("default"),
			c.AutoscalingV2().HorizontalPodAutoscalers("default")
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := yaml.UnmarshalStrict([]byte(everyMetric), hpa); err != nil {
			t.Fatal(err)
		}
		status := hpa.Status
		hpa = must(v2.Create(ctx, hpa, metav1.CreateOptions{}))
		hpa.Status = status
		before := must(v2.UpdateStatus(ctx, hpa, metav1.UpdateOptions{}))

		old := must(v1.Get(ctx, "web", metav1.GetOptions{}))
		if *old.Spec.TargetCPUUtilizationPercentage != 60 ||
			*old.Status.CurrentCPUUtilizationPercentage != 50 || old.Status.DesiredReplicas != 3 {
			t.Error(old.Spec, old.Status)
		}
		for annotation, part := range map[string]string{
			"metrics": `{"type":"Object","object":{"target":{"kind":"Service","name":"web"},` +
				`"metricName":"hits","targetValue":"0","averageValue":"7"}}`,
			"current-metrics": `"resource":{"name":"cpu","currentAverageUtilization":50,` +
				`"currentAverageValue":"100m"}`,
			"behavior":   `{"ScaleUp":{"StabilizationWindowSeconds":30,"SelectPolicy":"Min","Policies":`,
			"conditions": `[{"type":"AbleToScale","status":"True","lastTransitionTime":null,`,
		} {
			text := old.Annotations["autoscaling.alpha.kubernetes.io/"+annotation]
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s", annotation, text)
			}
		}
		old.Spec.MaxReplicas = 8
		must(v1.Update(ctx, old, metav1.UpdateOptions{}))
		after := must(v2.Get(ctx, "web", metav1.GetOptions{}))
		before.Spec.MaxReplicas = 8
		if len(after.Annotations) != 1 || after.Annotations["team"] != "shop" {
			t.Error(after.Annotations)
		}
		// v1 has no place for the order of metrics: that of CPU is the last one.
		if !equality.Semantic.DeepEqual(after.Spec, before.Spec) ||
			!equality.Semantic.DeepEqual(after.Status, before.Status) {
			t.Errorf("%+v\n%+v\n%+v\n%+v", before.Spec, after.Spec, before.Status, after.Status)
		}
	})
}

// Annotations that can't be read are ignored. Without metrics, CPU is the default.
func TestHPAsOfV1AreDefaulted(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiserver.Server, c *kubernetes.Clientset) {
		ctx := context.Background()
		hpa := &autoscalingv1.HorizontalPodAutoscaler{}
		hpa.Name, hpa.Spec.MaxReplicas = "web", 3
		hpa.Annotations = map[string]string{"autoscaling.alpha.kubernetes.io/metrics": "[{"}
		made := must(c.AutoscalingV1().HorizontalPodAutoscalers("default").Create(
			ctx, hpa, metav1.CreateOptions{}))
		stored := must(c.AutoscalingV2().HorizontalPodAutoscalers("default").Get(
			ctx, "web", metav1.GetOptions{}))
		if *made.Spec.TargetCPUUtilizationPercentage != 80 || *made.Spec.MinReplicas != 1 ||
			len(stored.Spec.Metrics) != 1 || len(stored.Annotations) != 0 || len(made.Annotations) != 0 {
			t.Error(made, stored)
		}
	})
}
