package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// noSuchPath is the answer of an API server to a path that no API has.
var noSuchPath = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{},
	"", "", 0, false)

// unserved is the answer to a request that a real API server serves, and this one does not.
func unserved(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented,
		Reason:  metav1.StatusReasonMethodNotAllowed,
		Message: "the API server in memory does not serve " + fmt.Sprintf(format, args...),
	}}
}

func unsupportedMediaType(contentType string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the API server in memory does not read bodies of type %q", contentType),
	}}
}
