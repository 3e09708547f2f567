package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Request is a request of a client, and its result.
type Request struct {
	// Context is that of the client.
	Context context.Context
	// Controller is the name in the client's [Server.Config].
	Controller string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb      string
	Namespace string
	// Resource and Version are nil for requests to an aggregated API.
	Resource *Resource
	Version  *Version
	// Path is the path, in parts. Rest are the parts after the version and the namespace.
	Path, Rest        []string
	Name, Subresource string
	Query             url.Values
	ContentType       string
	Body              []byte

	// Object is the object that was read or stored, and Before is the object before a write, both in
	// the stored version.
	Object, Before map[string]any
	// Changes are the changes of objects that the request made, in order: also those of other objects,
	// for example of dependents. A write that changes nothing has none.
	Changes []Change
	// Answer is the answer of an aggregated API, and Items is the number of items of a list.
	Answer any
	Items  int
	Err    error

	group schema.GroupVersion
	api   *api
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parse reads the path of a request.
func (s *Server) parse(r *http.Request) (*Request, error) {
	c := &Request{
		Context: r.Context(), Query: r.URL.Query(), Controller: controllerOf(r.Context()),
		Verb: verbs[r.Method],
	}
	c.ContentType, _, _ = strings.Cut(r.Header.Get("Content-Type"), ";")
	c.Path = strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts := c.Path
	switch {
	case c.Verb == "":
		return c, unserved("the method %s", r.Method)
	case len(parts) > 2 && parts[0] == "api":
		c.group, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.group, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	case parts[0] == "openapi":
		return c, unserved("OpenAPI documents")
	default:
		return c, noSuchPath
	}
	if len(parts) > 2 && parts[0] == "namespaces" && (parts[2] != "status" || len(parts) > 3) {
		c.Namespace, parts = parts[1], parts[2:]
	}
	c.Rest = parts
	if r.Body != nil {
		var err error
		if c.Body, err = io.ReadAll(r.Body); err != nil {
			return c, err
		}
	}
	return c, s.resolve(c)
}

// resolve finds the resource of a request.
func (s *Server) resolve(c *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.api = s.apis[c.group]; c.api != nil {
		return nil
	}
	if t := s.tableOf(c.group.WithResource(c.Rest[0]).GroupResource()); t != nil {
		c.Resource = t.resource
		c.Version = t.resource.version(c.group)
	}
	if c.Version == nil {
		if scheme.Scheme.IsVersionRegistered(c.group) {
			return unserved("%s of %s", c.Rest[0], c.group)
		}
		return noSuchPath
	}
	switch len(c.Rest) {
	case 1:
		c.Verb = verbOfAll(c.Verb, c.Query)
	case 2:
		c.Name = c.Rest[1]
	case 3:
		c.Name, c.Subresource = c.Rest[1], c.Rest[2]
	default:
		return unserved("the path /%s", strings.Join(c.Path, "/"))
	}
	return c.checkSubresource()
}

func verbOfAll(verb string, query url.Values) string {
	switch watch := query.Get("watch"); {
	case verb == "get" && (watch == "true" || watch == "1"):
		return "watch"
	case verb == "get":
		return "list"
	case verb == "delete":
		return "deletecollection"
	}
	return verb
}

func (c *Request) checkSubresource() error {
	switch c.Subresource {
	case "":
		return nil
	case "status":
		if c.Version.Status {
			return nil
		}
	case "scale":
		if c.Version.Scale != nil {
			return nil
		}
	default:
		return unserved("the subresource %s of %s", c.Subresource, c.Resource.GroupResource())
	}
	return noSuchPath
}

// decode reads the object in a request. Typed clients may send protobuf; answers are JSON.
func (c *Request) decode() (map[string]any, error) {
	body := c.Body
	switch c.ContentType {
	case "", "application/json":
	case "application/yaml":
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case "application/vnd.kubernetes.protobuf":
		o, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err == nil {
			o.GetObjectKind().SetGroupVersionKind(*gvk)
			body, err = json.Marshal(o)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	default:
		return nil, unsupportedMediaType(c.ContentType)
	}
	return decodeJSON(body)
}

// decodeJSON reads an object with integers as int64.
func decodeJSON(text []byte) (map[string]any, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if content == nil {
		return nil, apierrors.NewBadRequest("the body of the request is not an object")
	}
	return content, nil
}

func (c *Request) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{DryRun: c.Query["dryRun"]}
	if policy := metav1.DeletionPropagation(c.Query.Get("propagationPolicy")); policy != "" {
		options.PropagationPolicy = &policy
	}
	if len(bytes.TrimSpace(c.Body)) == 0 {
		return options, nil
	}
	content, err := c.decode()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, options)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

func (c *Request) dryRun() bool { return c.Query.Get("dryRun") == metav1.DryRunAll }
