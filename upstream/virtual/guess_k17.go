//go:build k1.7 && !k1.9

package virtual

import "k8s.io/apimachinery/pkg/api/meta"

// guessResource is the plural by which the client asks for a kind.
var guessResource = meta.UnsafeGuessKindToResource
