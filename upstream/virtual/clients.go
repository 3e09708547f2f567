package virtual

import (
	"context"
	"fmt"
	"net/http"
	"runtime"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	scaleclient "k8s.io/client-go/scale"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
)

// The clients below implement what the controller and its informers call, over the tables of a
// cluster. Anything else is a call of a nil interface, which is loud. client-go's fake clientset is
// not used: it assigns no resource versions to objects, and remembers every action.

// clientset is the client that the informers and the controller share.
type clientset struct {
	kubernetes.Interface
	cluster *cluster
	stopped <-chan struct{} // closed when the controller has ended
}

// IsWatchListSemanticsUnSupported makes reflectors list, then watch.
func (clientset) IsWatchListSemanticsUnSupported() bool { return true }

func (c clientset) CoreV1() coreclient.CoreV1Interface {
	return coreV1{cluster: c.cluster, stopped: c.stopped}
}

// autoscaling is the client of HPAs, in the version that the controller uses.
func (c clientset) autoscaling() hpaClientGroup { return hpaClients{cluster: c.cluster} }

type hpaClients struct {
	hpaClientGroup
	cluster *cluster
}

func (c hpaClients) HorizontalPodAutoscalers(string) hpaInterface {
	return hpas{cluster: c.cluster}
}

type hpas struct {
	hpaInterface
	cluster *cluster
}

func (c *cluster) listHPAs() *clientHPAList {
	items, version := c.hpas.table.list()
	list := &clientHPAList{}
	list.ResourceVersion = version
	for _, item := range items {
		list.Items = append(list.Items, *item)
	}
	return list
}

func (c *cluster) updateHPAStatus(hpa *clientHPA) (*clientHPA, error) {
	err := c.faults.updateStatus.statusError()
	var stored *clientHPA
	if err == nil {
		stored, err = c.hpas.updateStatus(hpa)
	}
	e := entry{kind: updateStatus, name: hpa.Name, err: err}
	written := stored
	if err != nil {
		written = hpa
		if sent, _, wireErr := overTheWire(hpa); wireErr == nil {
			written = sent
		}
	}
	shown, showErr := show(written)
	if showErr != nil {
		return nil, showErr
	}
	e.status = &shown.Status
	c.observed.record(e)
	return stored, err
}

type coreV1 struct {
	coreclient.CoreV1Interface
	cluster *cluster
	stopped <-chan struct{}
}

func (c coreV1) Pods(string) coreclient.PodInterface { return pods{table: c.cluster.pods} }

func (c coreV1) Events(string) coreclient.EventInterface { return events{stopped: c.stopped} }

type pods struct {
	coreclient.PodInterface
	table *table[*corev1.Pod]
}

// list is the pods that a selector matches, by name as the API server lists them.
func (p pods) list(text string) (*corev1.PodList, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items, version := p.table.list()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, item := range items {
		if selector.Matches(labels.Set(item.Labels)) {
			list.Items = append(list.Items, *item)
		}
	}
	return list, nil
}

// events is an API that never answers. What the controller records is heard of before it gets here,
// see eventLogger; so the broadcaster is spared the comparison of each event with those before it,
// by which it would merge and limit what it writes. Its goroutine ends with the controller.
type events struct {
	coreclient.EventInterface
	stopped <-chan struct{}
}

func (e events) CreateWithEventNamespace(*corev1.Event) (*corev1.Event, error) {
	<-e.stopped
	runtime.Goexit()
	return nil, nil
}

func (e events) CreateWithEventNamespaceWithContext(
	_ context.Context, event *corev1.Event,
) (*corev1.Event, error) {
	return e.CreateWithEventNamespace(event)
}

// scales is the scale subresource of every kind that has one.
type scales struct{ cluster *cluster }

func (s scales) Scales(string) scaleclient.ScaleInterface {
	return namespacedScales{cluster: s.cluster}
}

type namespacedScales struct {
	scaleclient.ScaleInterface
	cluster *cluster
}

func (c *cluster) readScale(
	resource schema.GroupResource, name string,
) (*autoscalingv1.Scale, error) {
	e := entry{kind: getScale, resource: resource.String(), name: name}
	defer func() { c.observed.record(e) }()
	if e.err = c.faults.getScale.statusError(); e.err != nil {
		return nil, e.err
	}
	if c.withoutScale[resource] {
		e.err = noSuchPath()
		return nil, e.err
	}
	row, ok := c.scales[scaleKey{resource, name}]
	if !ok {
		e.err = apierrors.NewNotFound(resource, name)
		return nil, e.err
	}
	e.replicas, e.statusReplicas = row.replicas, row.statusReplicas
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: row.replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: row.statusReplicas, Selector: row.selector},
	}, nil
}

// noSuchPath is what the API server answers to a request for a subresource that there is not: see
// serviceErrorHandler in its pkg/server/handler.go.
func noSuchPath() error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false)
}

func (c *cluster) writeScale(
	resource schema.GroupResource, scale *autoscalingv1.Scale,
) (*autoscalingv1.Scale, error) {
	c.turns.awaitRetry()
	e := entry{
		kind: updateScale, resource: resource.String(), name: scale.Name, replicas: scale.Spec.Replicas,
	}
	defer func() {
		c.turns.updated(e.err)
		c.observed.record(e)
	}()
	if e.err = c.faults.updateScale.statusError(); e.err != nil {
		return nil, e.err
	}
	row, ok := c.scales[scaleKey{resource, scale.Name}]
	if !ok {
		e.err = apierrors.NewNotFound(resource, scale.Name)
	} else {
		e.err = c.validateScale(scale.Name, scale.Spec.Replicas)
	}
	if e.err != nil {
		return nil, e.err
	}
	row.replicas = scale.Spec.Replicas
	return scale, nil
}

// podMetricses is metrics.k8s.io.
type podMetricses struct{ cluster *cluster }

func (p podMetricses) PodMetricses(string) podMetricsInterface {
	return namespacedPodMetrics{cluster: p.cluster}
}

type namespacedPodMetrics struct {
	podMetricsInterface
	cluster *cluster
}

func (c *cluster) readPodMetrics(selector string) (*metricsapi.PodMetricsList, error) {
	c.awaitMetrics()
	e := entry{kind: listPodMetrics, selector: selector}
	defer func() { c.observed.record(e) }()
	if e.err = c.faults.listPodMetrics.statusError(); e.err != nil {
		return nil, e.err
	}
	list, err := c.metrics.list(selector)
	if err != nil {
		e.err = apierrors.NewBadRequest(err.Error())
		return nil, e.err
	}
	e.replicas = int32(len(list.Items))
	return list, nil
}

// customMetrics is custom.metrics.k8s.io. From its root the controller reads only metrics of its
// own namespace, and there is but one: they are found under the namespace's name.
type customMetrics struct{ cluster *cluster }

func (m customMetrics) RootScopedMetrics() custom_metrics.MetricsInterface { return m }

func (m customMetrics) NamespacedMetrics(string) custom_metrics.MetricsInterface { return m }

func (c *cluster) readObjectMetric(
	kind schema.GroupKind, name, metric string, metricSelector labels.Selector,
) (*customValue, error) {
	c.awaitMetrics()
	e := entry{
		kind: objectMetric, metric: metric, metricSelector: metricSelector.String(),
		resource: kind.String(), name: name,
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.custom.objects[objectMetricKey{metric, kind, name}]
	if !ok {
		e.err = unknownMetric(metric, " for "+kind.String()+" "+name)
		return nil, e.err
	}
	items, err := answer.list(metricSelector)
	if err == nil && len(items) != 1 {
		// In the words of the client that the controller has otherwise.
		err = fmt.Errorf("the custom metrics API server returned %d results when we asked for "+
			"exactly one", len(items))
	}
	if err != nil {
		e.err = err
		return nil, err
	}
	e.value = items[0].Value.String()
	return &items[0], nil
}

func (c *cluster) readPodsMetric(
	selector labels.Selector, metric string, metricSelector labels.Selector,
) (*customValueList, error) {
	c.awaitMetrics()
	e := entry{
		kind: podsMetric, metric: metric, metricSelector: metricSelector.String(),
		selector: selector.String(),
	}
	defer func() { c.observed.record(e) }()
	answer, ok := c.custom.pods[metric]
	if !ok {
		e.err = unknownMetric(metric, " for pods")
		return nil, e.err
	}
	items, err := answer.list(selector, metricSelector)
	if err != nil {
		e.err = err
		return nil, err
	}
	e.replicas = int32(len(items))
	return &customValueList{Items: items}, nil
}
