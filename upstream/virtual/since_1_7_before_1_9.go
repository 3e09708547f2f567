//go:build k1.7 && !k1.9

package virtual

import "k8s.io/apimachinery/pkg/api/meta"

// guessResource is the resource that the client derives from a kind.
var guessResource = meta.UnsafeGuessKindToResource
