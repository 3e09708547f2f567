//go:build !k1.18

package virtual

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func (h hpas) List(metav1.ListOptions) (*clientHPAList, error) {
	return h.cluster.listHPAs(), nil
}

func (h hpas) Watch(metav1.ListOptions) (watch.Interface, error) {
	return h.cluster.hpas.table.watch(), nil
}

func (h hpas) UpdateStatus(
	hpa *clientHPA,
) (*clientHPA, error) {
	return h.updateStatus(hpa)
}

func (p pods) List(opts metav1.ListOptions) (*PodList, error) {
	return p.list(opts.LabelSelector)
}

func (p pods) Watch(metav1.ListOptions) (watch.Interface, error) {
	return p.table.watch(), nil
}
