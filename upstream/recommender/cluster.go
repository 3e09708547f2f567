package recommender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpa_api "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned/typed/autoscaling.k8s.io/v1"
	vpa_lister "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/listers/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/history"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/oom"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// cluster is the replacement of the API server and of the caches. Objects of the recommender's own
// kinds are stored as the API returns them: times are in whole seconds.
type cluster struct {
	vpas        cache.Indexer
	checkpoints cache.Indexer
	pods        cache.Indexer
	namespaces  []string
	targets     map[targetKey]*target
	metrics     metricsResponse
	history     []podHistory
	// observer is the OOM observer of the running recommender, which sees all updates of pods.
	observer oom.Observer
	// writes are the requests of the current run. Since 1.5, several workers send them in parallel.
	writes   []write
	ofWrites sync.Mutex
}

func newCluster(history []podHistory) *cluster {
	table := func() cache.Indexer {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	}
	return &cluster{
		vpas: table(), checkpoints: table(), pods: table(),
		targets: map[targetKey]*target{}, history: history,
	}
}

func (c *cluster) record(w write) {
	c.ofWrites.Lock()
	defer c.ofWrites.Unlock()
	c.writes = append(c.writes, w)
}

// apply applies a change that is not a restart.
func (c *cluster) apply(change *change) error {
	switch {
	case change.SetVpa != nil:
		return c.setVpa(change.SetVpa)
	case change.DeleteVpa != nil:
		return c.vpas.Delete(&vpa_types.VerticalPodAutoscaler{ObjectMeta: change.DeleteVpa.meta()})
	case change.SetPod != nil:
		return c.setPod(change.SetPod)
	case change.DeletePod != nil:
		return c.pods.Delete(&corev1.Pod{ObjectMeta: change.DeletePod.meta()})
	case change.SetCheckpoint != nil:
		c.addNamespace(change.SetCheckpoint.Namespace)
		return c.checkpoints.Update(change.SetCheckpoint)
	case change.DeleteCheckpoint != nil:
		meta := change.DeleteCheckpoint.meta()
		return c.checkpoints.Delete(&vpa_types.VerticalPodAutoscalerCheckpoint{ObjectMeta: meta})
	case change.SetTarget != nil:
		c.targets[change.SetTarget.targetKey] = change.SetTarget
	case change.DeleteTarget != nil:
		delete(c.targets, *change.DeleteTarget)
	case change.Event != nil:
		if c.observer != nil {
			c.observer.OnEvent(change.Event)
		}
	case change.SetMetrics != nil:
		c.metrics = *change.SetMetrics
	default:
		return errors.New("a change without a known member")
	}
	return nil
}

func (n *objectName) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}
}

func (c *cluster) addNamespace(name string) {
	if !slices.Contains(c.namespaces, name) {
		c.namespaces = append(c.namespaces, name)
	}
}

func (c *cluster) setVpa(vpa *vpa_types.VerticalPodAutoscaler) error {
	c.addNamespace(vpa.Namespace)
	existing, exists, err := c.vpas.Get(vpa)
	if err != nil {
		return err
	}
	if exists {
		vpa.Status = existing.(*vpa_types.VerticalPodAutoscaler).Status
	}
	return c.vpas.Update(vpa)
}

// setPod stores a pod as the recommender's watch shows it, which skips pending pods.
func (c *cluster) setPod(pod *corev1.Pod) error {
	c.addNamespace(pod.Namespace)
	if pod.Status.Phase == corev1.PodPending {
		return c.pods.Delete(pod)
	}
	existing, exists, err := c.pods.Get(pod)
	if err != nil {
		return err
	}
	if exists && c.observer != nil {
		c.observer.OnUpdate(existing, pod)
	}
	return c.pods.Update(pod)
}

// vpaLister lists VPAs in the order of their names: the order of upstream's lister is random.
// Upstream's lister watches one namespace if a flag names it.
type vpaLister struct {
	vpa_lister.VerticalPodAutoscalerLister
	namespace string
}

func (l vpaLister) List(selector labels.Selector) ([]*vpa_types.VerticalPodAutoscaler, error) {
	vpas, err := l.VerticalPodAutoscalerLister.List(selector)
	vpas = slices.DeleteFunc(vpas, func(vpa *vpa_types.VerticalPodAutoscaler) bool {
		return l.namespace != "" && vpa.Namespace != l.namespace
	})
	slices.SortFunc(vpas, func(a, b *vpa_types.VerticalPodAutoscaler) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return vpas, err
}

func (c *cluster) vpaLister(namespace string) vpa_lister.VerticalPodAutoscalerLister {
	return vpaLister{vpa_lister.NewVerticalPodAutoscalerLister(c.vpas), namespace}
}

func (c *cluster) checkpointLister() vpa_lister.VerticalPodAutoscalerCheckpointLister {
	return vpa_lister.NewVerticalPodAutoscalerCheckpointLister(c.checkpoints)
}

func (c *cluster) podLister() listersv1.PodLister { return listersv1.NewPodLister(c.pods) }

// VerticalPodAutoscalers returns the client of a namespace.
func (c *cluster) VerticalPodAutoscalers(namespace string) vpa_api.VerticalPodAutoscalerInterface {
	return &vpaClient{cluster: c, namespace: namespace}
}

// VerticalPodAutoscalerCheckpoints returns the client of a namespace.
func (c *cluster) VerticalPodAutoscalerCheckpoints(namespace string) vpa_api.VerticalPodAutoscalerCheckpointInterface {
	return &checkpointClient{cluster: c, namespace: namespace}
}

// patchedStatus returns the status of a JSON patch that consists of one operation on the status.
func patchedStatus(data []byte) (json.RawMessage, error) {
	var patches []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &patches); err != nil {
		return nil, err
	}
	if len(patches) != 1 || patches[0].Path != "/status" {
		return nil, fmt.Errorf("unexpected patch %s", data)
	}
	return patches[0].Value, nil
}

// vpaClient implements the methods of a client of VPAs that the recommender uses.
type vpaClient struct {
	vpa_api.VerticalPodAutoscalerInterface
	cluster   *cluster
	namespace string
}

func (c *vpaClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*vpa_types.VerticalPodAutoscaler, error) {
	value, err := patchedStatus(data)
	if err != nil {
		return nil, err
	}
	existing, exists, err := c.cluster.vpas.GetByKey(c.namespace + "/" + name)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(vpa_types.Resource("verticalpodautoscalers"), name)
	}
	vpa := existing.(*vpa_types.VerticalPodAutoscaler).DeepCopy()
	vpa.Status = vpa_types.VerticalPodAutoscalerStatus{}
	if err := json.Unmarshal(value, &vpa.Status); err != nil {
		return nil, err
	}
	c.cluster.record(write{Namespace: c.namespace, Name: name, Status: value})
	return vpa, c.cluster.vpas.Update(vpa)
}

// checkpointClient implements the methods of a client of checkpoints that the recommender uses.
type checkpointClient struct {
	vpa_api.VerticalPodAutoscalerCheckpointInterface
	cluster   *cluster
	namespace string
}

func (c *checkpointClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*vpa_types.VerticalPodAutoscalerCheckpoint, error) {
	value, err := patchedStatus(data)
	if err != nil {
		return nil, err
	}
	existing, exists, err := c.cluster.checkpoints.GetByKey(c.namespace + "/" + name)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(vpa_types.Resource("verticalpodautoscalercheckpoints"), name)
	}
	old := existing.(*vpa_types.VerticalPodAutoscalerCheckpoint)
	checkpoint := &vpa_types.VerticalPodAutoscalerCheckpoint{ObjectMeta: old.ObjectMeta, Spec: old.Spec}
	return checkpoint, c.store(checkpoint, value, nil)
}

// List lists the checkpoints of the namespace. Releases before 1.5 have no lister of checkpoints.
func (c *checkpointClient) List(context.Context, metav1.ListOptions) (*vpa_types.VerticalPodAutoscalerCheckpointList, error) {
	found, err := c.cluster.checkpointLister().VerticalPodAutoscalerCheckpoints(c.namespace).List(labels.Everything())
	list := &vpa_types.VerticalPodAutoscalerCheckpointList{}
	for _, checkpoint := range found {
		list.Items = append(list.Items, *checkpoint)
	}
	return list, err
}

func (c *checkpointClient) Create(_ context.Context, checkpoint *vpa_types.VerticalPodAutoscalerCheckpoint, _ metav1.CreateOptions) (*vpa_types.VerticalPodAutoscalerCheckpoint, error) {
	value, err := json.Marshal(checkpoint.Status)
	if err != nil {
		return nil, err
	}
	created := &vpa_types.VerticalPodAutoscalerCheckpoint{ObjectMeta: checkpoint.ObjectMeta, Spec: checkpoint.Spec}
	created.Namespace = c.namespace
	return created, c.store(created, value, &created.Spec)
}

// store stores a checkpoint with a status in the API's form.
func (c *checkpointClient) store(checkpoint *vpa_types.VerticalPodAutoscalerCheckpoint, status json.RawMessage, created *vpa_types.VerticalPodAutoscalerCheckpointSpec) error {
	if err := json.Unmarshal(status, &checkpoint.Status); err != nil {
		return err
	}
	c.cluster.record(write{
		Namespace: c.namespace, Name: checkpoint.Name, Checkpoint: status, Spec: created,
	})
	return c.cluster.checkpoints.Update(checkpoint)
}

func (c *checkpointClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	c.cluster.record(write{Namespace: c.namespace, Name: name, Deleted: true})
	meta := metav1.ObjectMeta{Namespace: c.namespace, Name: name}
	return c.cluster.checkpoints.Delete(&vpa_types.VerticalPodAutoscalerCheckpoint{ObjectMeta: meta})
}

// selector returns the selector of a VPA's target.
func (c *cluster) selector(vpa *vpa_types.VerticalPodAutoscaler) (labels.Selector, error) {
	ref := vpa.Spec.TargetRef
	if ref == nil {
		return nil, errors.New("targetRef not defined")
	}
	found := c.targets[targetKey{vpa.Namespace, ref.APIVersion, ref.Kind, ref.Name}]
	if found == nil {
		return nil, fmt.Errorf("%s %s/%s does not exist", ref.Kind, vpa.Namespace, ref.Name)
	}
	return labels.Parse(found.Selector)
}

// topmost returns the topmost controller above a target.
func (c *cluster) topmost(key *controllerKey) (*controllerKey, error) {
	found := c.targets[targetKey{key.Namespace, key.ApiVersion, key.Kind, key.Name}]
	switch {
	case found == nil:
		return nil, fmt.Errorf("%s %s/%s does not exist", key.Kind, key.Namespace, key.Name)
	case found.Error != "":
		return nil, errors.New(found.Error)
	case found.Parent == nil:
		return key, nil
	}
	parent := found.Parent
	above := &controllerKey{ApiVersion: parent.APIVersion}
	above.Namespace, above.Kind, above.Name = parent.Namespace, parent.Kind, parent.Name
	return above, nil
}

// List returns the response of the resource metrics API.
func (c *cluster) List(context.Context, string, metav1.ListOptions) (*v1beta1.PodMetricsList, error) {
	if c.metrics.Error != "" {
		return nil, errors.New(c.metrics.Error)
	}
	list := &v1beta1.PodMetricsList{}
	for i := range c.metrics.Items {
		item, err := c.metrics.Items[i].object()
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func (m *podMetrics) object() (v1beta1.PodMetrics, error) {
	object := v1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Timestamp:  metav1.Unix(m.Timestamp, 0),
	}
	for _, container := range m.Containers {
		usage := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{
			corev1.ResourceCPU: container.CPU, corev1.ResourceMemory: container.Memory,
		} {
			if text == "" {
				continue
			}
			quantity, err := resource.ParseQuantity(text)
			if err != nil {
				return object, err
			}
			usage[name] = quantity
		}
		object.Containers = append(object.Containers, v1beta1.ContainerMetrics{Name: container.Name, Usage: usage})
	}
	return object, nil
}

// GetClusterHistory returns the samples of the history provider.
func (c *cluster) GetClusterHistory() (map[model.PodID]*history.PodHistory, error) {
	result := map[model.PodID]*history.PodHistory{}
	for _, pod := range c.history {
		samples := map[string][]model.ContainerUsageSample{}
		for container, list := range pod.Containers {
			for _, sample := range list {
				samples[container] = append(samples[container], model.ContainerUsageSample{
					MeasureStart: time.Unix(sample.At, 0),
					Usage:        model.ResourceAmount(sample.Usage),
					Resource:     model.ResourceName(sample.Resource),
				})
			}
		}
		id := model.PodID{Namespace: pod.Namespace, PodName: pod.Name}
		result[id] = &history.PodHistory{LastLabels: pod.Labels, Samples: samples}
	}
	return result, nil
}
