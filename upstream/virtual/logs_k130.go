//go:build k1.30

package virtual

// quiet does nothing: the controller logs to the logger that it is given.
func quiet() {}
