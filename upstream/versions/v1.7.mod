module kube-lockstep.dev/upstream

go 1.26.0

require (
	github.com/davecgh/go-spew v1.1.1
	github.com/dgrijalva/jwt-go v3.2.0+incompatible
	github.com/docker/distribution v2.7.1+incompatible
	github.com/emicklei/go-restful-swagger12 v0.0.0-20170926063155-7524189396c6
	github.com/ghodss/yaml v1.0.0
	github.com/go-openapi/loads v0.17.2
	github.com/go-openapi/spec v0.17.2
	github.com/gogo/protobuf v1.3.2
	github.com/golang/glog v1.0.0
	github.com/golang/groupcache v0.0.0-20210331224755-41bb18bfe9da
	github.com/golang/protobuf v1.3.5
	github.com/google/gofuzz v1.0.0
	github.com/googleapis/gnostic v0.2.0
	github.com/hashicorp/golang-lru v0.5.1
	github.com/json-iterator/go v1.1.12
	github.com/juju/ratelimit v1.0.1
	github.com/modern-go/reflect2 v1.0.2
	github.com/opencontainers/go-digest v1.0.0
	github.com/pborman/uuid v1.2.1
	github.com/prometheus/client_golang v1.25.0
	github.com/spf13/pflag v1.0.5
	golang.org/x/net v0.59.0
	golang.org/x/oauth2 v0.37.0
	golang.org/x/sys v0.48.0
	golang.org/x/text v0.42.0
	golang.org/x/time v0.16.0
	gopkg.in/evanphx/json-patch.v4 v4.13.0
	gopkg.in/inf.v0 v0.9.1
	gopkg.in/square/go-jose.v2 v2.2.2
	gopkg.in/yaml.v2 v2.4.0
	k8s.io/apimachinery v0.0.0-00010101000000-000000000000
	k8s.io/apiserver v0.0.0-00010101000000-000000000000
	k8s.io/client-go v0.0.0-00010101000000-000000000000
	k8s.io/heapster v1.2.0-beta.1
	k8s.io/kubernetes v1.7.5
	k8s.io/metrics v0.0.0-00010101000000-000000000000
)

require (
	github.com/PuerkitoBio/purell v1.1.0 // indirect
	github.com/PuerkitoBio/urlesc v0.0.0-20170810143723-de5bf2ad4578 // indirect
	github.com/asaskevich/govalidator v0.0.0-20180720115003-f9ffefc3facf // indirect
	github.com/emicklei/go-restful v2.16.0+incompatible // indirect
	github.com/exponent-io/jsonpath v0.0.0-20210407135951-1de76d718b3f // indirect
	github.com/globalsign/mgo v0.0.0-20180905125535-1ca0a4f7cbcb // indirect
	github.com/go-openapi/analysis v0.0.0-20180825180245-b006789cd277 // indirect
	github.com/go-openapi/errors v0.17.0 // indirect
	github.com/go-openapi/jsonpointer v0.17.0 // indirect
	github.com/go-openapi/jsonreference v0.17.0 // indirect
	github.com/go-openapi/strfmt v0.17.0 // indirect
	github.com/go-openapi/swag v0.17.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mailru/easyjson v0.0.0-20180823135443-60711f1a8329 // indirect
	github.com/mitchellh/mapstructure v1.1.2 // indirect
	github.com/ugorji/go v0.0.0-00010101000000-000000000000 // indirect
)

replace (
	github.com/ugorji/go => ./modules/github.com/ugorji/go@v0.0.0-20170107133203-ded73eae5db7
	k8s.io/apiextensions-apiserver => ./staging/k8s.io/apiextensions-apiserver
	k8s.io/apimachinery => ./staging/k8s.io/apimachinery
	k8s.io/apiserver => ./staging/k8s.io/apiserver
	k8s.io/client-go => ./staging/k8s.io/client-go
	k8s.io/kube-aggregator => ./staging/k8s.io/kube-aggregator
	k8s.io/metrics => ./staging/k8s.io/metrics
	k8s.io/sample-apiserver => ./staging/k8s.io/sample-apiserver
)
