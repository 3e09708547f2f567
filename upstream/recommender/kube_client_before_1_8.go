//go:build !vpa1.8

package recommender

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Older feeders list the namespaces with this client.
func init() {
	feederFields = append(feederFields, func(f *input.ClusterStateFeederFactory, _ *settings, c *cluster) {
		f.KubeClient = kubeClient{cluster: c}
	})
}

type kubeClient struct {
	kubernetes.Interface
	cluster *cluster
}

func (k kubeClient) CoreV1() typedcorev1.CoreV1Interface { return coreClient{cluster: k.cluster} }

type coreClient struct {
	typedcorev1.CoreV1Interface
	cluster *cluster
}

func (k coreClient) Namespaces() typedcorev1.NamespaceInterface {
	return namespaceClient{cluster: k.cluster}
}

type namespaceClient struct {
	typedcorev1.NamespaceInterface
	cluster *cluster
}

func (k namespaceClient) List(context.Context, metav1.ListOptions) (*corev1.NamespaceList, error) {
	list := &corev1.NamespaceList{}
	for _, name := range k.cluster.namespaces {
		list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, nil
}
