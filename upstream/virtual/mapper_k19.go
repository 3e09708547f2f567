//go:build k1.9 && !k1.11

package virtual

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newDefaultMapper is one that knows no conversions: nobody asks it for them.
func newDefaultMapper(versions []schema.GroupVersion) *meta.DefaultRESTMapper {
	nothing := func(schema.GroupVersion) (*meta.VersionInterfaces, error) {
		return &meta.VersionInterfaces{}, nil
	}
	return meta.NewDefaultRESTMapper(versions, nothing)
}
