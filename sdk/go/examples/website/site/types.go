package site

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Website is a site that a Deployment of the same name serves. Its definition is in config/crd.yaml.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// Spec is the desired state of a site.
type Spec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// Status is the observed state of a site.
type Status struct {
	ReadyReplicas int32              `json:"readyReplicas"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// WebsiteList is a list of sites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

func (w *Website) deepCopy() *Website {
	made := &Website{TypeMeta: w.TypeMeta, Spec: w.Spec, Status: w.Status}
	w.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return made
}

// DeepCopyObject returns a copy.
func (w *Website) DeepCopyObject() runtime.Object { return w.deepCopy() }

// DeepCopyObject returns a copy.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	made := &WebsiteList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&made.ListMeta)
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].deepCopy())
	}
	return made
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
