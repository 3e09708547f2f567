//go:build k1.26

package virtual

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

func run(ctx context.Context, controller *podautoscaler.HorizontalController, workers int) {
	controller.Run(ctx, workers)
}
