package virtual

import (
	"context"
	"encoding/json"
	"runtime"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// events is the API that the controller's broadcaster sends events to, after client-go's correlator
// has merged and limited them. No event expires, and no request fails. Two events of one HPA at one
// time have the same name, which is made of the time; here they are different objects, because on a
// cluster their times differ.
//
// If the scenario does not observe the requests, the first of them is never answered. The correlator
// then compares no events, which takes long. Its goroutine ends with the controller.
type events struct {
	eventInterface
	cluster *cluster
	stopped <-chan struct{}
}

func (e events) CreateWithEventNamespace(event *Event) (*Event, error) {
	if !e.cluster.sentEvents {
		<-e.stopped
		runtime.Goexit()
	}
	return e.write("create", event, event.Message, event.Count, event.LastTimestamp), nil
}

func (e events) CreateWithEventNamespaceWithContext(
	_ context.Context, event *Event,
) (*Event, error) {
	return e.CreateWithEventNamespace(event)
}

// PatchWithEventNamespace records what is sent: the members of the patch. The event that the caller
// passes is the one that the API server has afterwards.
func (e events) PatchWithEventNamespace(event *Event, patch []byte) (*Event, error) {
	sent := struct {
		Count         int32
		Message       *string
		LastTimestamp metav1.Time
	}{Message: &event.Message}
	if err := json.Unmarshal(patch, &sent); err != nil {
		return nil, err
	}
	return e.write("patch", event, *sent.Message, sent.Count, sent.LastTimestamp), nil
}

func (e events) PatchWithEventNamespaceWithContext(
	_ context.Context, event *Event, patch []byte,
) (*Event, error) {
	return e.PatchWithEventNamespace(event, patch)
}

func (e events) write(
	verb string, event *Event, message string, count int32, last metav1.Time,
) *Event {
	object := event.InvolvedObject
	e.cluster.observed.record(entry{
		kind: sendEvent, namespace: event.Namespace, name: object.Name,
		eventType: event.Type, reason: event.Reason, message: message, replicas: count,
		resource: object.Kind, apiVersion: object.APIVersion,
		sent: &sentEvent{
			verb: verb, component: event.Source.Component, name: event.Name,
			objectUID: string(object.UID), first: event.FirstTimestamp.Time, last: last.Time,
		},
	})
	stored := *event
	e.cluster.eventVersion++
	stored.ResourceVersion = strconv.Itoa(e.cluster.eventVersion)
	return &stored
}
