package apiserver

import (
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Release is the release of Kubernetes whose API is served.
const Release = "v1.37.2"

// aggregatedType is the content type of aggregated discovery documents.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers a request for a discovery document. It returns false for other requests.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || len(parts) > 3 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis") &&
		strings.Contains(
			strings.ReplaceAll(r.Header.Get("Accept"), " ", ""),
			"as=APIGroupDiscoveryList",
		) {
		respondAs(w, http.StatusOK, aggregatedType, s.aggregated(parts[0] == "api"))
		return true
	}
	answer := s.document(parts)
	if answer == nil {
		return false
	}
	respond(w, http.StatusOK, answer)
	return true
}

// document returns a legacy discovery document, or nil.
func (s *Server) document(parts []string) any {
	switch {
	case len(parts) == 1 && parts[0] == "version":
		number := strings.Split(strings.TrimPrefix(Release, "v"), ".")
		return &version.Info{Major: number[0], Minor: number[1], GitVersion: Release}
	case len(parts) == 1 && parts[0] == "api":
		return &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		}
	case len(parts) == 1 && parts[0] == "apis":
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, group := range s.groups() {
			if group != "" {
				list.Groups = append(list.Groups, *s.group(group))
			}
		}
		return list
	case len(parts) == 2 && parts[0] == "apis":
		if slices.Contains(s.groups(), parts[1]) {
			return s.group(parts[1])
		}
	case len(parts) == 2 && parts[0] == "api":
		return s.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil
}

// groupVersions returns the served versions of all groups, in order.
func (s *Server) groupVersions() (list []schema.GroupVersion) {
	for _, t := range s.order {
		for _, v := range t.resource.Versions {
			if !v.Unserved && !slices.Contains(list, v.GroupVersion) {
				list = append(list, v.GroupVersion)
			}
		}
	}
	apis := make([]schema.GroupVersion, len(s.apis))
	for gv, a := range s.apis {
		apis[a.number] = gv
	}
	return append(list, apis...)
}

func (s *Server) groups() (list []string) {
	for _, gv := range s.groupVersions() {
		if !slices.Contains(list, gv.Group) {
			list = append(list, gv.Group)
		}
	}
	return list
}

func (s *Server) group(name string) *metav1.APIGroup {
	g := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, gv := range s.groupVersions() {
		if gv.Group == name {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: gv.String(), Version: gv.Version,
			})
		}
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

var allVerbs = metav1.Verbs{
	"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
}

// apiResources returns the resources and subresources of a version.
func (s *Server) apiResources(gv schema.GroupVersion) (list []metav1.APIResource) {
	for _, t := range s.order {
		r := t.resource
		v := r.version(gv)
		if v == nil {
			continue
		}
		one := metav1.APIResource{
			Name: r.Plural, SingularName: strings.ToLower(r.Kind), Namespaced: !r.ClusterScoped,
			Kind: r.Kind, Verbs: allVerbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		list = append(list, one)
		sub := metav1.APIResource{
			Namespaced: one.Namespaced, Kind: r.Kind, Verbs: metav1.Verbs{"get", "patch", "update"},
		}
		if v.Status {
			sub.Name = r.Plural + "/status"
			list = append(list, sub)
		}
		if v.Scale != nil {
			sub.Name = r.Plural + "/scale"
			sub.Group, sub.Version, sub.Kind = "autoscaling", "v1", "Scale"
			list = append(list, sub)
		}
	}
	if a := s.apis[gv]; a != nil {
		list = append(list, a.Resources...)
	}
	return list
}

func (s *Server) resources(gv schema.GroupVersion) any {
	if !slices.Contains(s.groupVersions(), gv) {
		return nil
	}
	return &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(), APIResources: s.apiResources(gv),
	}
}

// aggregated returns the aggregated document of the core group, or of the other groups.
func (s *Server) aggregated(core bool) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2",
	}}
	for _, name := range s.groups() {
		if (name == "") != core {
			continue
		}
		group := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, gv := range s.groupVersions() {
			if gv.Group == name {
				group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{
					Version: gv.Version, Resources: s.discoveries(gv),
					Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				})
			}
		}
		list.Items = append(list.Items, group)
	}
	return list
}

// discoveries are the resources of a version with their subresources.
func (s *Server) discoveries(gv schema.GroupVersion) (list []apidiscovery.APIResourceDiscovery) {
	for _, r := range s.apiResources(gv) {
		kind := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		name, subresource, isSub := strings.Cut(r.Name, "/")
		if isSub && len(list) > 0 && list[len(list)-1].Resource == name {
			parent := &list[len(list)-1]
			parent.Subresources = append(parent.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: subresource, ResponseKind: kind, Verbs: r.Verbs,
			})
			continue
		}
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		list = append(list, apidiscovery.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return list
}
