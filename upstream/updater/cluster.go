package updater

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"testing/synctest"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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

func newCluster(resizes bool) *cluster {
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
		if !resizes {
			return true, nil, errors.New("the server could not find the requested resource")
		}
		record(action, update{Resize: &resize{Pod: p.GetName(), Patches: p.GetPatch()}})
		return true, nil, nil
	})
	return c
}

// clear forgets all requests.
func (c *cluster) clear() {
	c.updates = map[string][]update{}
	c.kube.ClearActions()
}

// vpaAPI is an API that has VPAs and sends their changes to its only watch.
type vpaAPI struct {
	// vpas are the namespaces of the VPAs, each of which has one.
	vpas    map[string]*vpa_types.VerticalPodAutoscaler
	changes *io.PipeWriter
	watch   *io.PipeReader
}

func newVPAAPI() *vpaAPI {
	a := &vpaAPI{vpas: map[string]*vpa_types.VerticalPodAutoscaler{}}
	a.watch, a.changes = io.Pipe()
	return a
}

func (a *vpaAPI) client() (*vpa_clientset.Clientset, error) {
	// Upstream's lister would first ask for the list as a stream of events.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		return nil, err
	}
	return vpa_clientset.NewForConfig(&rest.Config{Host: "http://vpas", Transport: a})
}

// set replaces all VPAs, and waits until the updater's lister has received the changes.
func (a *vpaAPI) set(vpas []*vpa_types.VerticalPodAutoscaler) error {
	before := a.vpas
	a.vpas = map[string]*vpa_types.VerticalPodAutoscaler{}
	for _, vpa := range vpas {
		a.vpas[vpa.Namespace] = vpa
		kind := watch.Modified
		if before[vpa.Namespace] == nil {
			kind = watch.Added
		}
		if err := a.send(kind, vpa); err != nil {
			return err
		}
	}
	for namespace, vpa := range before {
		if a.vpas[namespace] == nil {
			if err := a.send(watch.Deleted, vpa); err != nil {
				return err
			}
		}
	}
	synctest.Wait()
	return nil
}

func (a *vpaAPI) send(kind watch.EventType, vpa *vpa_types.VerticalPodAutoscaler) error {
	object := *vpa
	object.APIVersion = vpa_types.SchemeGroupVersion.String()
	object.Kind = "VerticalPodAutoscaler"
	object.ResourceVersion = "2"
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: &object}}
	return json.NewEncoder(a.changes).Encode(event)
}

// RoundTrip answers requests for the list of all VPAs, which is empty at the start, and watches.
func (a *vpaAPI) RoundTrip(q *http.Request) (*http.Response, error) {
	body := io.ReadCloser(a.watch)
	if q.URL.Query().Get("watch") == "" {
		list := vpa_types.VerticalPodAutoscalerList{
			TypeMeta: metav1.TypeMeta{
				APIVersion: vpa_types.SchemeGroupVersion.String(), Kind: "VerticalPodAutoscalerList",
			},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		body = io.NopCloser(bytes.NewReader(text))
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       body,
		Request:    q,
	}, nil
}
