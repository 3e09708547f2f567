//go:build !k1.7

package virtual

import "encoding/json"

// stable is what tells two stored objects apart. Kubernetes 1.6 stores annotations in the random
// order of a map, so that a write that changes nothing is one now and then: here it never is.
func stable(hpa *storageHPA, _ []byte) ([]byte, error) { return json.Marshal(hpa) }
