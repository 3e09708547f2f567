//go:build k1.11

package virtual

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newDefaultMapper(versions []schema.GroupVersion) *meta.DefaultRESTMapper {
	return meta.NewDefaultRESTMapper(versions)
}

// tryGates is what upstream says of a change of its feature gates. A gate set remembers an attempt
// that fails, and fails for ever after: so it is made on a copy.
func tryGates(gates map[string]bool) error { return mutableGates.DeepCopy().SetFromMap(gates) }
