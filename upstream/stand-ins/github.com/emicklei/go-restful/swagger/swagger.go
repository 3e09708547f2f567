// Package swagger was part of go-restful before it became a separate module, which Kubernetes 1.6
// uses here: the versions of go-restful that contain the package are no longer available.
package swagger

import swagger12 "github.com/emicklei/go-restful-swagger12"

type (
	ApiDeclaration = swagger12.ApiDeclaration
	ModelProperty  = swagger12.ModelProperty
)
