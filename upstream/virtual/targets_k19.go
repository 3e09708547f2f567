//go:build k1.9

package virtual

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newMapper(targets []target) meta.RESTMapper {
	var versions []schema.GroupVersion
	for _, t := range targets {
		version := schema.GroupVersion{Group: t.group, Version: t.version}
		// The mapper would try one that it is told twice, twice.
		if !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	mapper := newDefaultMapper(versions)
	for _, t := range targets {
		version := schema.GroupVersion{Group: t.group, Version: t.version}
		plural := version.WithResource(t.resource)
		mapper.AddSpecific(version.WithKind(t.kind), plural, plural, meta.RESTScopeNamespace)
	}
	// As the discovery mapper of the kube-controller-manager: its error for an unknown kind differs.
	return meta.MultiRESTMapper{mapper}
}
