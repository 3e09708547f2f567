//go:build !k1.23

package virtual

import "k8s.io/kubernetes/pkg/apis/autoscaling"

// clientHPA is an HPA as the controller reads and writes it.
type clientHPA = HPAv1

// show is the object as answers show it: what the controller can read of it.
func show(hpa *clientHPA) (*shownHPA, error) {
	internal := &autoscaling.HorizontalPodAutoscaler{}
	// A conversion may write into what it converts.
	if err := apiScheme.Convert(copyOf(hpa), internal, nil); err != nil {
		return nil, err
	}
	shown := &shownHPA{}
	return shown, apiScheme.Convert(internal, shown, nil)
}
