package apiserver

import "k8s.io/apimachinery/pkg/runtime/schema"

// renamed are the fields of a core event whose names differ in events.k8s.io.
var renamed = map[string]string{
	"involvedObject":     "regarding",
	"message":            "note",
	"source":             "deprecatedSource",
	"firstTimestamp":     "deprecatedFirstTimestamp",
	"lastTimestamp":      "deprecatedLastTimestamp",
	"count":              "deprecatedCount",
	"reportingComponent": "reportingController",
}

// events are the same objects in both groups.
func events() *Resource {
	r := resource(schema.GroupVersion{Version: "v1"}, "Event", "events", nil, false)
	r.ShortNames = []string{"ev"}
	r.Versions = append(r.Versions, &Version{
		GroupVersion: schema.GroupVersion{Group: "events.k8s.io", Version: "v1"},
		FromStored: func(event map[string]any) (map[string]any, error) {
			for core, other := range renamed {
				rename(event, core, other)
			}
			return event, nil
		},
		ToStored: func(event map[string]any) (map[string]any, error) {
			for core, other := range renamed {
				rename(event, other, core)
			}
			return event, nil
		},
	})
	return r
}

func rename(in map[string]any, from, to string) {
	if value, ok := in[from]; ok {
		delete(in, from)
		in[to] = value
	}
}
