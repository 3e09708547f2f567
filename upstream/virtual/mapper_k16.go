//go:build !k1.11

package virtual

import (
	"errors"

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

// tryGates refuses all: a set of gates could not be tried on a copy.
func tryGates(map[string]bool) error {
	return errors.New("up to Kubernetes 1.10 no feature gate concerns the controller")
}
