// Package main prints the types of the API of which manifests of HPAs and their targets consist, as
// Go decodes them: the name of each struct, and below it its fields with their types. The suite
// `api_server` runs it with the modules of upstream/controlplane/versions and compares its output
// with crates/scenario/src/api_types.txt.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func main() {
	for _, root := range []any{
		autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.HorizontalPodAutoscaler{},
		apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, core.ReplicationController{},
	} {
		add(reflect.TypeOf(root))
	}
	var names []string
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name)
		sort.Strings(types[name])
		for _, field := range types[name] {
			fmt.Println(" " + field)
		}
	}
}

// types has the fields of each struct.
var types = map[string][]string{}

// decoded lists the types that decode themselves.
var decoded = map[reflect.Type]bool{
	reflect.TypeOf(resource.Quantity{}): true, reflect.TypeOf(intstr.IntOrString{}): true,
	reflect.TypeOf(meta.Time{}): true, reflect.TypeOf(meta.FieldsV1{}): true,
}

func add(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		add(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if decoded[t] || types[t.String()] != nil {
		return
	}
	types[t.String()] = []string{}
	types[t.String()] = fields(t)
}

func fields(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name := strings.Split(field.Tag.Get("json"), ",")[0]
		switch {
		case name == "-":
		case name == "":
			// Errors name embedded structs as well.
			for _, embedded := range fields(field.Type) {
				all = append(all, field.Name+"."+embedded)
			}
		case name != "status":
			all = append(all, name+" "+named(field.Type))
			add(field.Type)
		default:
			all = append(all, "status any")
		}
	}
	return all
}

// named is a type as Go's errors name it, with the kind of a type that is not a struct.
func named(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return named(t.Elem())
	case reflect.Slice:
		return "[]" + named(t.Elem())
	case reflect.Map:
		if t.Name() == "" {
			return "map[string]" + named(t.Elem())
		}
		return t.String() + "=map[string]" + named(t.Elem())
	case reflect.Struct:
		return t.String()
	}
	if t.String() != t.Kind().String() {
		return t.String() + "=" + t.Kind().String()
	}
	return t.String()
}
