//go:build !k1.9

package virtual

import "k8s.io/kubernetes/pkg/api"

// The types of the API server, and how they are written and read.
var apiScheme, apiCodecs = api.Scheme, api.Codecs
