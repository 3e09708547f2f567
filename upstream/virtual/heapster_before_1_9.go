//go:build !k1.9

package virtual

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	heapster "k8s.io/heapster/metrics/api/v1/types"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// customValue is a value of a metric of pods.
type customValue struct {
	DescribedObject ObjectReference
	Timestamp       metav1.Time
	WindowSeconds   *int64
	Value           resource.Quantity
}

// externalValue is empty: there is no external.metrics.k8s.io.
type externalValue struct{}

// setExternalMetric does nothing: the controller sends no such queries.
func (*namespaced) setExternalMetric(*externalMetricChange) error { return nil }

// nameMetric does nothing: the query contains the name.
func nameMetric(*customValue, string) {}

// newMetricsClient returns the default metrics client of the kube-controller-manager: up to
// Kubernetes 1.8 it queries Heapster through the API server's service proxy.
func newMetricsClient(c *cluster) metrics.MetricsClient {
	return metrics.NewHeapsterMetricsClient(clientset{cluster: c},
		metrics.DefaultHeapsterNamespace, metrics.DefaultHeapsterScheme,
		metrics.DefaultHeapsterService, metrics.DefaultHeapsterPort)
}

func (c clientset) Core() coreInterface { return c.CoreV1() }

func (c coreV1) Services(string) serviceInterface { return services{cluster: c.cluster} }

// services are the service proxies, of which only Heapster's exists.
type services struct {
	serviceInterface
	cluster *cluster
}

func (s services) ProxyGet(
	_, _, _, path string, params map[string]string,
) rest.ResponseWrapper {
	return heapsterQuery{cluster: s.cluster, path: path, params: params}
}

// heapsterQuery is a query of Heapster.
type heapsterQuery struct {
	rest.ResponseWrapper
	cluster *cluster
	path    string
	params  map[string]string
}

func (q heapsterQuery) DoRaw() ([]byte, error) {
	var answer any
	var err error
	_, path, _ := strings.Cut(q.path, "/namespaces/")
	namespace, _, _ := strings.Cut(path, "/")
	if _, query, ok := strings.Cut(q.path, "/pod-list/"); ok {
		pods, metric, _ := strings.Cut(query, "/metrics/")
		answer, err = q.cluster.readHeapsterModel(namespace, pods, metric, q.params["start"])
	} else {
		answer, err = q.cluster.readPodMetrics(namespace, q.params["labelSelector"])
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// readHeapsterModel is the response of Heapster's model API for a metric of pods since a time: an
// item for each pod, in the order of the query. Items of unknown pods are empty.
func (c *cluster) readHeapsterModel(
	namespace, pods, metric, start string,
) (*heapster.MetricResultList, error) {
	c.awaitMetrics()
	e := entry{kind: podsMetric, namespace: namespace, metric: metric, selector: pods}
	defer func() { c.observed.record(e) }()
	since, err := time.Parse(time.RFC3339, start)
	if err != nil {
		e.err = err
		return nil, err
	}
	values := map[string]*customValue{}
	if answer, ok := c.in(namespace).custom.pods[metric]; ok {
		if e.err = answer.err; e.err != nil {
			return nil, e.err
		}
		for i := range answer.values {
			value := &answer.values[i]
			values[value.DescribedObject.Name] = value
		}
	}
	list := &heapster.MetricResultList{}
	for _, pod := range strings.Split(pods, ",") {
		item := heapster.MetricResult{Metrics: []heapster.MetricPoint{}}
		if value, ok := values[pod]; ok && !value.Timestamp.Time.Before(since) {
			e.replicas++
			point := metricPoint(value)
			item.Metrics = append(item.Metrics, point)
			item.LatestTimestamp = point.Timestamp
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

// metricPoint is a value in Heapster's form: an integer if it is whole and not negative, else a
// floating-point number.
func metricPoint(v *customValue) heapster.MetricPoint {
	point := heapster.MetricPoint{Timestamp: v.Timestamp.Time}
	quantity := v.Value
	text := quantity.AsDec().String()
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(fraction, "0") == "" {
		if value, err := strconv.ParseUint(whole, 10, 64); err == nil {
			point.Value = value
			return point
		}
	}
	// Every quantity is in the range of a float64.
	value, _ := strconv.ParseFloat(text, 64)
	point.FloatValue = &value
	return point
}
