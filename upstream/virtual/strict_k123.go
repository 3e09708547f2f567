//go:build k1.23

package virtual

import "k8s.io/apimachinery/pkg/runtime"

// strict is the serializer that refuses unknown fields.
func strict(info runtime.SerializerInfo) runtime.Serializer { return info.StrictSerializer }
