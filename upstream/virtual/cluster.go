package virtual

import (
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// cluster replaces the API server and the metrics APIs. It changes only while all goroutines of the
// bubble are blocked, so most of it needs no lock.
type cluster struct {
	namespace    string
	observed     *observed
	hpas         *hpaAPI
	pods         *table[*Pod]
	podCount     int
	templates    map[string]*template
	namespaces   map[string]*namespaced
	withoutScale map[schema.GroupResource]bool // known kinds without a scale
	faults       faults
	turns        *turns // the queue of serialized workers, or nil
	scaleVersion int64  // the resource version of the scale that was written last
	sentEvents   bool   // whether requests that write events are answered and observed
	eventVersion int    // the resource version of the last event
}

// namespaced holds the objects and metrics of one namespace.
type namespaced struct {
	*cluster
	namespace string
	scales    map[scaleKey]*scaleRow
	metrics   *metricsTable
	custom    *customTable
}

// template holds the fields that the pods of one template share.
type template struct {
	labels map[string]string
	spec   PodSpec
}

type scaleKey struct {
	resource schema.GroupResource
	name     string
}

// scaleRow is the scale of an object. The object has a new resource version when its scale changes.
type scaleRow struct {
	scaleFields
	version int64
}

type scaleFields struct {
	replicas, statusReplicas int32
	selector                 string
}

// resourceVersion is the resource version of the object.
func (r *scaleRow) resourceVersion() string { return strconv.FormatInt(r.version, 10) }

// storeScale changes the scale of an object. Like the API server, it drops a write without a change.
func (c *cluster) storeScale(row *scaleRow, fields scaleFields) {
	if row.version == 0 || row.scaleFields != fields {
		c.scaleVersion++
		row.scaleFields, row.version = fields, c.scaleVersion
	}
}

func newCluster(namespace string, o *observed) *cluster {
	return &cluster{
		namespace:    namespace,
		observed:     o,
		hpas:         newHPAAPI(namespace),
		pods:         newTable[*Pod](),
		templates:    map[string]*template{},
		namespaces:   map[string]*namespaced{},
		withoutScale: map[schema.GroupResource]bool{},
	}
}

// in returns the objects of a namespace. A query without one concerns the namespace of the HPAs.
func (c *cluster) in(namespace string) *namespaced {
	if namespace == "" {
		namespace = c.namespace
	}
	o, ok := c.namespaces[namespace]
	if !ok {
		o = &namespaced{
			cluster:   c,
			namespace: namespace,
			scales:    map[scaleKey]*scaleRow{},
			metrics:   newMetricsTable(),
			custom:    newCustomTable(),
		}
		c.namespaces[namespace] = o
	}
	return o
}

// apply applies a change that concerns neither an HPA nor the controller.
func (c *cluster) apply(change *change) error {
	if change.inNamespace != nil {
		return c.in(change.inNamespace.namespace).apply(change.inNamespace.change)
	}
	return c.in(c.namespace).apply(change)
}

func (c *namespaced) apply(change *change) error {
	switch {
	case change.podMetrics != nil:
		return c.setMetrics(change.podMetrics)
	case change.podsMetric != nil:
		return c.setPodsMetric(change.podsMetric)
	case change.objectMetric != nil:
		return c.setObjectMetric(change.objectMetric)
	case change.externalMetric != nil:
		return c.setExternalMetric(change.externalMetric)
	case change.setScale != nil:
		return c.setScale(change.setScale)
	case change.deleteScale != nil:
		gone := change.deleteScale
		delete(c.scales, scaleKey{schema.ParseGroupResource(gone.resource), gone.name})
	case change.setPods != nil:
		for i := range change.setPods {
			if err := c.setPod(&change.setPods[i]); err != nil {
				return err
			}
		}
	case change.deletePods != nil:
		for _, name := range change.deletePods {
			c.pods.delete(c.namespace, name)
		}
	case change.podTemplate != nil:
		return c.setTemplate(change.podTemplate)
	case change.faults != nil:
		c.faults = *change.faults
		c.hpas.table.setLag(c.faults.cacheLag)
		c.pods.setLag(c.faults.cacheLag)
	default:
		return errors.New("an empty change")
	}
	return nil
}

func (c *namespaced) setScale(s *setScale) error {
	key := scaleKey{schema.ParseGroupResource(s.resource), s.name}
	row, ok := c.scales[key]
	if !ok {
		if s.replicas == nil {
			return fmt.Errorf("setScale: %s %s is new and needs replicas", s.resource, s.name)
		}
		row = &scaleRow{}
		c.scales[key] = row
	}
	replicas := row.replicas
	if s.replicas != nil {
		replicas = *s.replicas
	}
	c.storeScale(row, scaleFields{replicas, s.statusReplicas, s.selector})
	return nil
}

func (c *cluster) setTemplate(t *podTemplate) error {
	made := &template{labels: t.labels}
	spec := &made.spec
	var err error
	if spec.Containers, err = containers(t.containers); err != nil {
		return err
	}
	if spec.InitContainers, err = containers(t.initContainers); err != nil {
		return err
	}
	if t.requests != nil {
		requests, err := resourceList(t.requests)
		if err != nil {
			return fmt.Errorf("podTemplate: requests: %w", err)
		}
		setPodRequests(spec, requests)
	}
	overhead, err := resourceList(t.overhead)
	if err != nil {
		return fmt.Errorf("podTemplate: overhead: %w", err)
	}
	setOverhead(spec, overhead)
	c.templates[t.name] = made
	return nil
}

func containers(list []container) ([]Container, error) {
	var made []Container
	for _, from := range list {
		requests, err := resourceList(from.requests)
		if err != nil {
			return nil, fmt.Errorf("podTemplate: container %s: %w", from.name, err)
		}
		c := Container{Name: from.name}
		c.Resources.Requests = requests
		if from.sidecar {
			setSidecar(&c)
		}
		made = append(made, c)
	}
	return made, nil
}

func resourceList(texts map[string]string) (ResourceList, error) {
	list := make(ResourceList, len(texts))
	for name, text := range texts {
		quantity, err := parseQuantity(text)
		if err != nil {
			return nil, err
		}
		list[ResourceName(name)] = quantity
	}
	return list, nil
}

func (c *namespaced) setPod(p *podState) error {
	template, ok := c.templates[p.template]
	if !ok {
		return fmt.Errorf("setPods: there is no template %q", p.template)
	}
	pod := &Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: c.namespace, Labels: template.labels},
		Spec:       template.spec,
		Status:     PodStatus{Phase: PodPhase(p.phase)},
	}
	if before, ok := c.pods.get(c.namespace, p.name); ok {
		pod.UID = before.UID
	} else {
		c.podCount++
		pod.UID = types.UID(fmt.Sprintf("00000000-0000-4000-9000-%012d", c.podCount))
	}
	if p.startTime != nil {
		start := c.time(*p.startTime)
		pod.Status.StartTime = &start
	}
	if p.deletionTimestamp != nil {
		deletion := c.time(*p.deletionTimestamp)
		pod.DeletionTimestamp = &deletion
	}
	if p.ready != nil {
		pod.Status.Conditions = []PodCondition{{
			Type:               PodReady,
			Status:             ConditionStatus(p.ready.status),
			LastTransitionTime: c.time(p.ready.lastTransitionTime),
		}}
	}
	c.pods.put(pod)
	return nil
}

// apiAnswer is the API server's response to a write of an HPA.
type apiAnswer struct {
	name    string
	stored  *shownHPA
	refused error
}

// write applies a change to an HPA, if it is one.
func (c *cluster) write(change *change) (apiAnswer, bool) {
	var a apiAnswer
	switch {
	case change.createHPA != nil:
		a.stored, a.name, a.refused = c.hpas.create(change.createHPA)
	case change.patchHPA != nil:
		a.name = change.patchHPA.name
		a.stored, a.refused = c.hpas.patch(a.name, change.patchHPA.patch)
	case change.deleteHPA != "":
		a.name = change.deleteHPA
		a.refused = c.hpas.delete(a.name)
	default:
		return a, false
	}
	return a, true
}
