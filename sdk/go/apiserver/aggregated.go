package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// API is an API that stores no objects, like the metrics APIs.
type API struct {
	schema.GroupVersion
	// Resources are listed in the discovery.
	Resources []metav1.APIResource
	// Answer answers a GET or another request. Request.Rest has the parts of the path. A nil answer
	// means that there is no such path.
	Answer func(*Request) (any, error)
}

type api struct {
	API
	number int
}

// ServeAPI serves an aggregated API.
func (s *Server) ServeAPI(a API) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apis[a.GroupVersion] = &api{a, len(s.apis)}
}

func (a *api) answer(c *Request) (any, error) {
	if c.Verb != "get" {
		return nil, unserved("%s requests to %s", c.Verb, a.GroupVersion)
	}
	answer, err := a.Answer(c)
	if answer == nil && err == nil {
		err = noSuchPath
	}
	c.Answer = answer
	return answer, err
}
