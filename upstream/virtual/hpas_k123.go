//go:build k1.23

package virtual

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
)

type clientHPAList = autoscalingv2.HorizontalPodAutoscalerList

func (c clientset) AutoscalingV2() autoscalingclient.AutoscalingV2Interface {
	return autoscalingV2Client{cluster: c.cluster}
}

type autoscalingV2Client struct {
	autoscalingclient.AutoscalingV2Interface
	cluster *cluster
}

func (a autoscalingV2Client) HorizontalPodAutoscalers(
	string,
) autoscalingclient.HorizontalPodAutoscalerInterface {
	return hpas{cluster: a.cluster}
}

type hpas struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	cluster *cluster
}

func (h hpas) List(context.Context, metav1.ListOptions) (*clientHPAList, error) {
	return h.cluster.listHPAs(), nil
}

func (h hpas) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return h.cluster.hpas.table.watch(), nil
}

func (h hpas) UpdateStatus(
	_ context.Context, hpa *clientHPA, _ metav1.UpdateOptions,
) (*clientHPA, error) {
	return h.cluster.updateHPAStatus(hpa)
}
