//go:build !k1.8

package virtual

// copyOf is a deep copy of an object.
func copyOf[T object](o T) T {
	made, err := apiScheme.DeepCopy(o)
	if err != nil {
		panic(err)
	}
	return made.(T)
}
