//go:build !k1.13

package virtual

import (
	"flag"
	_ "github.com/golang/glog" // its flags
	"os"
)

// quiet discards the controller's log, which can't be disabled and would be written to files.
func quiet() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	os.Stderr = null
	_ = flag.Set("logtostderr", "true")
}
