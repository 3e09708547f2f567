//go:build !k1.7

package virtual

import "k8s.io/apimachinery/pkg/api/meta"

// guessResource is the plural by which the client asks for a kind.
var guessResource = meta.KindToResource
