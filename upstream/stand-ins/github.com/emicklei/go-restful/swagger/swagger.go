// Package swagger was a part of go-restful until it became a module of its own, which is what
// Kubernetes 1.6 gets here: the versions of go-restful that have it are not served any more.
package swagger

import swagger12 "github.com/emicklei/go-restful-swagger12"

type (
	ApiDeclaration = swagger12.ApiDeclaration
	ModelProperty  = swagger12.ModelProperty
)
