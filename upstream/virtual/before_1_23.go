//go:build !k1.23

package virtual

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

func run(ctx context.Context, controller *podautoscaler.HorizontalController, _ int) {
	controller.Run(ctx.Done())
}

// clientHPA is an HPA in the version that the controller reads and writes.
type clientHPA = HPAv1

var clientVersion = versionV1

// show converts the object to the version of responses, which contains everything that the
// controller can read.
func show(hpa *clientHPA) (*shownHPA, error) {
	internal := &autoscaling.HorizontalPodAutoscaler{}
	// A conversion may modify its input.
	if err := apiScheme.Convert(copyOf(hpa), internal, nil); err != nil {
		return nil, err
	}
	shown := &shownHPA{}
	return shown, apiScheme.Convert(internal, shown, nil)
}

// strict is the only serializer: up to Kubernetes 1.22 the API server ignores unknown fields.
func strict(info runtime.SerializerInfo) runtime.Serializer { return info.Serializer }
