//go:build !vpa1.1

package recommender

import controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/input/controller_fetcher"

type controllerKey = controllerfetcher.ControllerKeyWithAPIVersion
