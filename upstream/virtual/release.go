package virtual

import (
	"reflect"
	"runtime"
	"strings"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

// release is the version of the built-in controller, taken from the location of its source at
// compile time. A test binary has no list of its modules.
func release() string {
	pc := reflect.ValueOf(podautoscaler.NewHorizontalController).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	if _, version, ok := strings.Cut(file, "k8s.io/kubernetes@"); ok {
		version, _, _ = strings.Cut(version, "/")
		return version
	}
	return "local"
}
