package updater

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpa_clientset "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	core "k8s.io/client-go/testing"
)

// deployment is the name of the target of each VPA.
const deployment = "web"

// cluster records the requests that change pods.
type cluster struct {
	kube *fake.Clientset
	// updates are the requests by namespace, in their order.
	updates map[string][]update
}

func newCluster(q *request) *cluster {
	c := &cluster{kube: fake.NewSimpleClientset(), updates: map[string][]update{}}
	record := func(action core.Action, u update) {
		c.updates[action.GetNamespace()] = append(c.updates[action.GetNamespace()], u)
	}
	c.kube.PrependReactor("create", "pods", func(action core.Action) (bool, runtime.Object, error) {
		eviction, is := action.(core.CreateAction).GetObject().(*policyv1.Eviction)
		if is {
			record(action, update{Evict: eviction.Name})
		}
		return is, nil, nil
	})
	c.kube.PrependReactor("patch", "pods", func(action core.Action) (bool, runtime.Object, error) {
		p := action.(core.PatchAction)
		if p.GetSubresource() != "resize" {
			// The annotations of a resized pod.
			return true, nil, nil
		}
		if !q.Resizes {
			return true, nil, errors.New("the server could not find the requested resource")
		}
		record(action, update{Resize: &resize{Pod: p.GetName(), Patches: p.GetPatch()}})
		return true, nil, nil
	})
	return c
}

// vpaClient is a client of an API that has the VPAs of the request.
func vpaClient(q *request) (*vpa_clientset.Clientset, error) {
	list := vpa_types.VerticalPodAutoscalerList{
		TypeMeta: metav1.TypeMeta{
			APIVersion: vpa_types.SchemeGroupVersion.String(), Kind: "VerticalPodAutoscalerList",
		},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	}
	for _, one := range q.Cases {
		list.Items = append(list.Items, *one.VPA)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	// Upstream's lister would first ask for the list as a stream of events.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		return nil, err
	}
	return vpa_clientset.NewForConfig(&rest.Config{Host: "http://vpas", Transport: api(text)})
}

// api answers requests for the list of all VPAs with this text, and watches with silence.
type api []byte

func (a api) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Query().Get("watch") != "" {
		<-q.Context().Done()
		return nil, fmt.Errorf("the watch has ended: %w", q.Context().Err())
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(a)),
		Request:    q,
	}, nil
}
