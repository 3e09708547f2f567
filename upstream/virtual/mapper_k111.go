//go:build k1.11

package virtual

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newDefaultMapper(versions []schema.GroupVersion) *meta.DefaultRESTMapper {
	return meta.NewDefaultRESTMapper(versions)
}
