//go:build k1.9 && !k1.11

package virtual

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newDefaultMapper creates a mapper without conversions, which the controller does not use.
func newDefaultMapper(versions []schema.GroupVersion) *meta.DefaultRESTMapper {
	nothing := func(schema.GroupVersion) (*meta.VersionInterfaces, error) {
		return &meta.VersionInterfaces{}, nil
	}
	return meta.NewDefaultRESTMapper(versions, nothing)
}
