package virtual

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The clients below implement the calls of the controller and its informers on the tables of a
// cluster. Any other call panics, because the interface is nil. The fake clientset of client-go is
// not used: it assigns no resource versions, and keeps every action in memory.

// clientset is the client that the informers and the controller share.
type clientset struct {
	clientInterface
	cluster *cluster
	stopped <-chan struct{} // closed when the controller has ended
}

// IsWatchListSemanticsUnSupported makes reflectors list, then watch.
func (clientset) IsWatchListSemanticsUnSupported() bool { return true }

func (c clientset) CoreV1() coreInterface {
	return coreV1{cluster: c.cluster, stopped: c.stopped}
}

// autoscaling is the client of HPAs, in the version that the controller uses.
func (c clientset) autoscaling() hpaClientGroup { return hpaClients{cluster: c.cluster} }

type hpaClients struct {
	hpaClientGroup
	cluster *cluster
}

func (c hpaClients) HorizontalPodAutoscalers(namespace string) hpaInterface {
	return hpas{cluster: c.cluster, namespace: namespace}
}

type hpas struct {
	hpaInterface
	cluster   *cluster
	namespace string
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

func (h hpas) updateStatus(hpa *clientHPA) (*clientHPA, error) {
	c := h.cluster
	err := c.faults.updateStatus.statusError()
	var stored *clientHPA
	if err == nil {
		stored, err = c.hpas.updateStatus(h.namespace, hpa)
	}
	e := entry{
		kind: updateStatus, namespace: h.namespace, apiVersion: clientVersion.String(), name: hpa.Name,
		err: err,
	}
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
	coreInterface
	cluster *cluster
	stopped <-chan struct{}
}

func (c coreV1) Pods(namespace string) podInterface {
	return pods{table: c.cluster.pods, namespace: namespace}
}

type pods struct {
	podInterface
	table     *table[*Pod]
	namespace string // empty: all
}

// list returns the pods that a selector matches, sorted by name as by the API server.
func (p pods) list(text string) (*PodList, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items, version := p.table.list()
	list := &PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, item := range items {
		inNamespace := p.namespace == metav1.NamespaceAll || p.namespace == item.Namespace
		if inNamespace && selector.Matches(labels.Set(item.Labels)) {
			list.Items = append(list.Items, *item)
		}
	}
	return list, nil
}

// readScale is a GET of the scale subresource of a resource.
func (c *cluster) readScale(
	namespace string, resource schema.GroupResource, name string,
) (scaleRow, error) {
	e := entry{kind: getScale, namespace: namespace, resource: resource.String(), name: name}
	defer func() { c.observed.record(e) }()
	if e.err = c.faults.getScale.statusError(); e.err != nil {
		return scaleRow{}, e.err
	}
	row, err := c.in(namespace).scaleRow(resource, name)
	if err == errMissing {
		err = missingScale(unreadScales, resource, name)
	}
	if err != nil {
		e.err = err
		return scaleRow{}, err
	}
	e.replicas, e.statusReplicas = row.replicas, row.statusReplicas
	// The scale may change before the controller reads the response.
	return *row, nil
}

// noSuchPath is the API server's response to a request for an unknown subresource: see
// serviceErrorHandler in its pkg/server/handler.go.
func noSuchPath() error {
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false)
}

// errMissing means that no object has the name.
var errMissing = errors.New("missing")

// missingScale is the API server's error for an absent scale. The error uses another name for some
// kinds.
func missingScale(
	named map[string]schema.GroupResource, resource schema.GroupResource, name string,
) error {
	if as, ok := named[resource.String()]; ok {
		resource = as
	}
	return apierrors.NewNotFound(resource, name)
}

// errOutdated is the reason of a conflict: see OptimisticLockErrorMsg of the API server.
var errOutdated = errors.New(
	"the object has been modified; please apply your changes to the latest version and try again")

// writeScale is a PUT of the scale subresource of a resource: e has the object that is sent, apart
// from its resource version.
func (c *cluster) writeScale(resource schema.GroupResource, e entry, version string) error {
	c.turns.awaitRetry()
	e.kind, e.resource, e.apiVersion = updateScale, resource.String(), scaleVersion.String()
	name, replicas := e.name, e.replicas
	defer func() {
		c.turns.updated(e.err)
		c.observed.record(e)
	}()
	if e.err = c.faults.updateScale.statusError(); e.err != nil {
		return e.err
	}
	row, err := c.in(e.namespace).scaleRow(resource, name)
	if err == errMissing {
		err = missingScale(unwrittenScales, resource, name)
	}
	if err == nil {
		err = c.validateScale(name, replicas)
	}
	if err == nil && version != "" && version != row.resourceVersion() {
		err = outdatedScale(resource, name)
	}
	if err != nil {
		e.err = err
		return err
	}
	c.storeScale(row, scaleFields{replicas, row.statusReplicas, row.selector})
	return nil
}

func (c *cluster) readPodMetrics(namespace, selector string) (*PodMetricsList, error) {
	c.awaitMetrics()
	e := entry{kind: listPodMetrics, namespace: namespace, selector: selector}
	defer func() { c.observed.record(e) }()
	if e.err = c.faults.listPodMetrics.statusError(); e.err != nil {
		return nil, e.err
	}
	list, err := c.in(namespace).metrics.list(selector)
	if err != nil {
		e.err = apierrors.NewBadRequest(err.Error())
		return nil, e.err
	}
	e.replicas = int32(len(list.Items))
	return list, nil
}
