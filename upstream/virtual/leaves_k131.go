//go:build k1.31

package virtual

// leavesGoroutines is whether a controller that was stopped leaves goroutines that wait for ever.
const leavesGoroutines = false
