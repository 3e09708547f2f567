//go:build !k1.13

package virtual

import (
	"flag"
	"os"

	_ "github.com/golang/glog" // its flags
)

// quiet has the controller's log dropped. This one can't be turned off, and would otherwise go to
// files.
func quiet() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	os.Stderr = null
	_ = flag.Set("logtostderr", "true")
}
