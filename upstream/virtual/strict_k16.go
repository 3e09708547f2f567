//go:build !k1.23

package virtual

import "k8s.io/apimachinery/pkg/runtime"

// strict is the only serializer: up to Kubernetes 1.22 the API server skips unknown fields.
func strict(info runtime.SerializerInfo) runtime.Serializer { return info.Serializer }
