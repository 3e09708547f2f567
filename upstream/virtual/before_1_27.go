//go:build !k1.27

package virtual

import "k8s.io/kubernetes/pkg/apis/autoscaling"

// storageHPA is an HPA in the storage version.
type storageHPA = HPAv1

// serve converts a stored object to the version of clients.
func serve(_ *storageHPA, internal *autoscaling.HorizontalPodAutoscaler) (*clientHPA, error) {
	served := &clientHPA{}
	// A conversion may share memory with its input.
	return served, apiScheme.Convert(copyOf(internal), served, nil)
}

// ownSeries are the series of the controller's own metrics, which it does not have yet.
var ownSeries controllerSeries

type controllerSeries struct{}

func (controllerSeries) start()                            {}
func (controllerSeries) collect()                          {}
func (controllerSeries) ended() bool                       { return false }
func (controllerSeries) changes(entries []entry) []entry   { return entries }
func (controllerSeries) increases(entries []entry) []entry { return entries }
