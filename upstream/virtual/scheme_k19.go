//go:build k1.9

package virtual

import "k8s.io/kubernetes/pkg/api/legacyscheme"

// The types of the API server, and how they are written and read.
var apiScheme, apiCodecs = legacyscheme.Scheme, legacyscheme.Codecs
