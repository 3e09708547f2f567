package virtual

import (
	"reflect"
	"runtime"
	"strings"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
)

// release is the version of the controller that was built in, told by where its source was when it
// was compiled. A test binary has no list of its modules.
func release() string {
	pc := reflect.ValueOf(podautoscaler.NewHorizontalController).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	if _, version, ok := strings.Cut(file, "k8s.io/kubernetes@"); ok {
		version, _, _ = strings.Cut(version, "/")
		return version
	}
	return "local"
}
