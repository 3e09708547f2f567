//go:build k1.23 && !k1.26

package virtual

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

func run(ctx context.Context, controller *podautoscaler.HorizontalController, _ int) {
	controller.Run(ctx)
}
