package apiserver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Resource is a kind of objects that the server stores.
type Resource struct {
	Kind string
	// Plural is the name in paths.
	Plural        string
	ShortNames    []string
	Categories    []string
	ClusterScoped bool
	// Versions are the served versions, the preferred version first. Objects are stored in the first
	// version unless another one is Stored.
	Versions []*Version
	// Admit, if set, defaults and validates an object that a client writes, in the stored version. It
	// may change after, and returns the object to store. before is nil for a new object.
	Admit func(subresource string, before, after map[string]any) (map[string]any, error)
	// OwnGeneration is true if Admit sets the generation, which otherwise counts changes outside of
	// metadata and status.
	OwnGeneration bool
}

// Version is a version of a resource. A resource may have versions in several groups, like events.
type Version struct {
	schema.GroupVersion
	// Stored marks the version in which objects are stored.
	Stored bool
	// Unserved hides a version from clients, which can only be the stored one.
	Unserved bool
	// Status is true if the version has a status subresource.
	Status bool
	// Scale is the place of the scale subresource, or nil.
	Scale *Scale
	// FromStored and ToStored convert a copy of an object from and to the stored version. If they are
	// nil, versions differ in apiVersion only.
	FromStored, ToStored func(map[string]any) (map[string]any, error)

	schema *customSchema               // of custom resources
	types  managedfields.TypeConverter // for server-side apply, of custom resources
}

// Scale says where an object keeps what its scale subresource shows.
type Scale struct{ Replicas, StatusReplicas, Selector []string }

// CustomScale has the paths that most custom resources use.
var CustomScale = &Scale{
	[]string{"spec", "replicas"}, []string{"status", "replicas"}, []string{"status", "selector"},
}

var workloadScale = &Scale{
	[]string{"spec", "replicas"}, []string{"status", "replicas"}, []string{"spec", "selector"},
}

// GroupResource names the resource by the group of its stored version.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.stored().Group, Resource: r.Plural}
}

// StoredVersion is the version in which objects are stored.
func (r *Resource) StoredVersion() *Version { return r.stored() }

func (r *Resource) stored() *Version {
	for _, v := range r.Versions {
		if v.Stored {
			return v
		}
	}
	return r.Versions[0]
}

func (r *Resource) version(gv schema.GroupVersion) *Version {
	for _, v := range r.Versions {
		if v.GroupVersion == gv && !v.Unserved {
			return v
		}
	}
	return nil
}

func (r *Resource) gvk(v *Version) schema.GroupVersionKind { return v.WithKind(r.Kind) }

func (r *Resource) groups() (groups []string) {
	for _, v := range r.Versions {
		if !slices.Contains(groups, v.Group) {
			groups = append(groups, v.Group)
		}
	}
	return groups
}

// resource is a resource with one version.
func resource(gv schema.GroupVersion, kind, plural string, scale *Scale, status bool) *Resource {
	return &Resource{
		Kind: kind, Plural: plural,
		Versions: []*Version{{GroupVersion: gv, Status: status, Scale: scale}},
	}
}

// Builtin returns the built-in kinds that a new server serves: those of the core group, apps,
// autoscaling, batch, coordination.k8s.io, networking.k8s.io, policy and rbac.authorization.k8s.io
// that controllers of workloads read or write.
func Builtin() []*Resource {
	core := schema.GroupVersion{Version: "v1"}
	in := func(group string) schema.GroupVersion {
		return schema.GroupVersion{Group: group, Version: "v1"}
	}
	rbac := in("rbac.authorization.k8s.io")
	list := []*Resource{
		horizontalPodAutoscalers(), // the first one: see table.number
		resource(core, "ConfigMap", "configmaps", nil, false),
		resource(core, "Endpoints", "endpoints", nil, false),
		resource(core, "Namespace", "namespaces", nil, true),
		resource(core, "Node", "nodes", nil, true),
		resource(core, "PersistentVolumeClaim", "persistentvolumeclaims", nil, true),
		resource(core, "Pod", "pods", nil, true),
		resource(core, "PodTemplate", "podtemplates", nil, false),
		resource(core, "ReplicationController", "replicationcontrollers", workloadScale, true),
		resource(core, "Secret", "secrets", nil, false),
		resource(core, "Service", "services", nil, true),
		resource(core, "ServiceAccount", "serviceaccounts", nil, false),
		resource(in("apps"), "ControllerRevision", "controllerrevisions", nil, false),
		resource(in("apps"), "DaemonSet", "daemonsets", nil, true),
		resource(in("apps"), "Deployment", "deployments", workloadScale, true),
		resource(in("apps"), "ReplicaSet", "replicasets", workloadScale, true),
		resource(in("apps"), "StatefulSet", "statefulsets", workloadScale, true),
		resource(in("batch"), "CronJob", "cronjobs", nil, true),
		resource(in("batch"), "Job", "jobs", nil, true),
		resource(in("coordination.k8s.io"), "Lease", "leases", nil, false),
		resource(in("networking.k8s.io"), "Ingress", "ingresses", nil, true),
		resource(in("networking.k8s.io"), "NetworkPolicy", "networkpolicies", nil, false),
		resource(in("policy"), "PodDisruptionBudget", "poddisruptionbudgets", nil, true),
		resource(rbac, "ClusterRole", "clusterroles", nil, false),
		resource(rbac, "ClusterRoleBinding", "clusterrolebindings", nil, false),
		resource(rbac, "Role", "roles", nil, false),
		resource(rbac, "RoleBinding", "rolebindings", nil, false),
		events(), customResourceDefinitions(),
	}
	for _, r := range list {
		switch r.Kind {
		case "Namespace", "Node", "ClusterRole", "ClusterRoleBinding":
			r.ClusterScoped = true
		}
	}
	return list
}

// convert returns a copy of a stored object in another version.
func (r *Resource) convert(content map[string]any, to *Version) (map[string]any, error) {
	made := shallow(content)
	if to.FromStored != nil {
		var err error
		if made, err = to.FromStored(deepCopy(content)); err != nil {
			return nil, err
		}
	}
	made["apiVersion"], made["kind"] = to.String(), r.Kind
	return made, nil
}

// store returns an object that a client sent in a version, in the stored version.
func (r *Resource) store(content map[string]any, from *Version) (map[string]any, error) {
	if from.ToStored != nil {
		var err error
		if content, err = from.ToStored(content); err != nil {
			return nil, err
		}
	}
	content["apiVersion"], content["kind"] = r.stored().String(), r.Kind
	return content, nil
}

func path(dotted string) []string { return strings.Split(strings.TrimPrefix(dotted, "."), ".") }
