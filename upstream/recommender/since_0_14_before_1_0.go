//go:build vpa0.14 && !vpa1.0

package recommender

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/metrics"
	"k8s.io/client-go/rest"
)

// metricsClient returns upstream's client, which makes its own HTTP client: its requests go to the
// cluster instead of a connection.
func metricsClient(c *cluster, namespace string) metrics.MetricsClient {
	config := &rest.Config{Host: "http://cluster", Transport: metricsTransport{c}}
	return metrics.NewMetricsClient(config, namespace, "default-metrics-client")
}

type metricsTransport struct{ cluster *cluster }

// RoundTrip answers a request for the usage of all pods.
func (t metricsTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	var body any
	code := http.StatusOK
	list, err := t.cluster.List(request.Context(), "", metav1.ListOptions{})
	if err != nil {
		code = http.StatusInternalServerError
		body = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Message: err.Error(), Code: int32(code),
		}
	} else {
		list.APIVersion, list.Kind = "metrics.k8s.io/v1beta1", "PodMetricsList"
		body = list
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(text)),
		Request:    request,
	}, nil
}
