package apiserver_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"kube-lockstep.dev/sdk/apiserver"
)

// Legacy and aggregated documents list the same resources.
func TestDiscovery(t *testing.T) {
	inBubble(t, func(t *testing.T, s *apiserver.Server, client *kubernetes.Clientset) {
		s.ServeAPI(apiserver.API{
			GroupVersion: schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"},
			Resources:    []metav1.APIResource{{Name: "pods", Kind: "PodMetrics", Namespaced: true}},
			Answer: func(c *apiserver.Request) (any, error) {
				if c.Rest[0] != "pods" {
					return nil, nil
				}
				return map[string]string{"kind": "PodMetricsList"}, nil
			},
		})
		if err := s.ServeCRD([]byte(servers)); err != nil {
			t.Fatal(err)
		}
		names := func(legacy bool) (map[string]bool, []*metav1.APIGroup) {
			d := discovery.NewDiscoveryClientForConfigOrDie(s.Config("test"))
			d.UseLegacyDiscovery = legacy
			groups, lists, err := d.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, list := range lists {
				for _, r := range list.APIResources {
					found[list.GroupVersion+" "+r.Name+" "+r.Kind] = true
				}
			}
			return found, groups
		}
		legacy, _ := names(true)
		aggregated, groups := names(false)
		for _, name := range []string{
			"v1 pods/status Pod", "apps/v1 deployments/scale Scale", "metrics.k8s.io/v1beta1 pods PodMetrics",
			"example.com/v2 servers/scale Scale", "events.k8s.io/v1 events Event",
		} {
			if !legacy[name] || !aggregated[name] {
				t.Errorf("%s: legacy %t, aggregated %t", name, legacy[name], aggregated[name])
			}
		}
		if len(legacy) != len(aggregated) {
			t.Errorf("%d and %d resources", len(legacy), len(aggregated))
		}
		for _, g := range groups {
			if g.Name == "example.com" && g.PreferredVersion.Version != "v2" {
				t.Error(g)
			}
		}
		get := func(path string) error {
			return client.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		}
		if err := get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"); err != nil {
			t.Error(err)
		}
		if err := get("/apis/metrics.k8s.io/v1beta1/nodes"); err == nil {
			t.Error("an unknown path has an answer")
		}
		if v, err := client.Discovery().ServerVersion(); err != nil || v.GitVersion != apiserver.Release {
			t.Error(v, err)
		}
	})
}
