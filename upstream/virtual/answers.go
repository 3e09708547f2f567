package virtual

import (
	"encoding/json"
	"strconv"
	"time"
)

func appendHello(b []byte, release string) []byte {
	b = append(b, `{"hello":{"protocol":5,"engine":"upstream","release":`...)
	return append(appendString(b, release), "}}\n"...)
}

func appendOpened(b []byte, epoch time.Time) []byte {
	return append(appendTime(append(b, `{"opened":{"epoch":`...), epoch), "}}\n"...)
}

// appendTime appends a time in the JSON of the API.
func appendTime(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339), '"')
}

func appendClosed(b []byte) []byte { return append(b, "{\"closed\":{}}\n"...) }

func appendFailed(b []byte, why string) []byte {
	return append(appendString(append(b, `{"failed":{"why":`...), why), "}}\n"...)
}

func appendStepped(b []byte, now time.Duration, api []apiAnswer, log []entry) ([]byte, error) {
	b = append(b, `{"stepped":{"now":`...)
	b = strconv.AppendInt(b, int64(now), 10)
	b = append(b, `,"api":[`...)
	for i := range api {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendAPIAnswer(b, &api[i]); err != nil {
			return b, err
		}
	}
	b = append(b, `],"log":[`...)
	for i := range log {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendEntry(b, &log[i]); err != nil {
			return b, err
		}
	}
	return append(b, "]}}\n"...), nil
}

func appendAPIAnswer(b []byte, a *apiAnswer) ([]byte, error) {
	switch {
	case a.refused != nil:
		b = appendString(append(b, `{"refused":{"name":`...), a.name)
		b = appendString(append(b, `,"message":`...), a.refused.Error())
	case a.stored == nil:
		b = appendString(append(b, `{"deleted":{"name":`...), a.name)
	default:
		spec, err := json.Marshal(&a.stored.Spec)
		if err != nil {
			return b, err
		}
		b = appendString(append(b, `{"stored":{"name":`...), a.name)
		b = strconv.AppendInt(append(b, `,"generation":`...), a.stored.Generation, 10)
		b = append(append(b, `,"spec":`...), spec...)
	}
	return append(b, '}', '}'), nil
}

func appendEntry(b []byte, e *entry) ([]byte, error) {
	b = strconv.AppendInt(append(b, `{"at":`...), int64(e.at), 10)
	if e.kind.isRequest() {
		b = appendString(append(b, `,"namespace":`...), e.namespace)
	}
	switch e.kind {
	case getScale:
		b = appendString(append(b, `,"getScale":{"resource":`...), e.resource)
		b = appendString(append(b, `,"name":`...), e.name)
		if e.err == nil {
			b = strconv.AppendInt(append(b, `,"replicas":`...), int64(e.replicas), 10)
			b = strconv.AppendInt(append(b, `,"statusReplicas":`...), int64(e.statusReplicas), 10)
		}
	case listPodMetrics:
		b = appendString(append(b, `,"listPodMetrics":{"selector":`...), e.selector)
		if e.err == nil {
			b = strconv.AppendInt(append(b, `,"items":`...), int64(e.replicas), 10)
		}
	case podsMetric:
		b = appendString(append(b, `,"podsMetric":{"metric":`...), e.metric)
		if e.resource != "" { // Heapster has no kinds.
			b = appendString(append(b, `,"kind":`...), e.resource)
		}
		b = appendString(append(b, `,"selector":`...), e.selector)
		b = appendItems(b, e)
	case objectMetric:
		b = appendString(append(b, `,"objectMetric":{"metric":`...), e.metric)
		b = appendString(append(b, `,"kind":`...), e.resource)
		b = appendString(append(b, `,"name":`...), e.name)
		b = appendString(append(b, `,"metricSelector":`...), e.metricSelector)
		if e.err == nil {
			b = appendString(append(b, `,"value":`...), e.value)
		}
	case externalMetric:
		b = appendString(append(b, `,"externalMetric":{"metric":`...), e.metric)
		b = appendItems(b, e)
	case updateScale:
		b = appendString(append(b, `,"updateScale":{"resource":`...), e.resource)
		b = appendString(append(b, `,"name":`...), e.name)
		b = appendString(append(b, `,"apiVersion":`...), e.apiVersion)
		b = strconv.AppendInt(append(b, `,"replicas":`...), int64(e.replicas), 10)
		b = strconv.AppendInt(append(b, `,"statusReplicas":`...), int64(e.statusReplicas), 10)
		b = appendString(append(b, `,"selector":`...), e.selector)
	case updateStatus:
		b = appendString(append(b, `,"updateStatus":{"name":`...), e.name)
		b = appendString(append(b, `,"apiVersion":`...), e.apiVersion)
		var err error
		if b, err = appendStatus(append(b, `,"status":`...), e.status); err != nil {
			return b, err
		}
	case event, sendEvent:
		b = appendEvent(b, e)
	case reconcileError:
		b = appendString(append(b, `,"error":{"message":`...), e.message)
	case metricIncrease:
		b = appendString(append(b, `,"controllerMetric":{"series":`...), e.metric)
		b = strconv.AppendFloat(append(b, `,"increase":`...), e.amount, 'f', -1, 64)
	case metricValue:
		b = appendString(append(b, `,"controllerMetric":{"series":`...), e.metric)
		b = strconv.AppendFloat(append(b, `,"value":`...), e.amount, 'f', -1, 64)
	case reconcile:
		b = appendString(append(b, `,"reconcile":{"hpa":`...), e.name)
	case reconciled:
		b = appendString(append(b, `,"reconciled":{"hpa":`...), e.name)
	}
	if e.err != nil {
		b = appendString(append(b, `,"error":`...), e.err.Error())
	}
	return append(b, '}', '}'), nil
}

// appendEvent appends an event that the controller records, or a request that sends it.
func appendEvent(b []byte, e *entry) []byte {
	if e.kind == sendEvent {
		b = appendString(append(b, `,"sendEvent":{"verb":`...), e.sent.verb)
		b = append(b, `,"hpa":`...)
	} else {
		b = append(b, `,"event":{"hpa":`...)
	}
	b = appendString(b, e.name)
	b = appendString(append(b, `,"type":`...), e.eventType)
	b = appendString(append(b, `,"reason":`...), e.reason)
	b = appendString(append(b, `,"message":`...), e.message)
	if e.kind != sendEvent {
		return b
	}
	b = strconv.AppendInt(append(b, `,"count":`...), int64(e.replicas), 10)
	b = appendString(append(b, `,"objectKind":`...), e.resource)
	b = appendString(append(b, `,"objectApiVersion":`...), e.apiVersion)
	b = appendString(append(b, `,"objectUid":`...), e.sent.objectUID)
	b = appendString(append(b, `,"component":`...), e.sent.component)
	b = appendString(append(b, `,"eventName":`...), e.sent.name)
	b = appendTime(append(b, `,"firstTimestamp":`...), e.sent.first)
	return appendTime(append(b, `,"lastTimestamp":`...), e.sent.last)
}

// appendItems appends the items of an answer and its selector, which all metric queries share.
func appendItems(b []byte, e *entry) []byte {
	b = appendString(append(b, `,"metricSelector":`...), e.metricSelector)
	if e.err == nil {
		b = strconv.AppendInt(append(b, `,"items":`...), int64(e.replicas), 10)
	}
	return b
}

// appendStatus appends the status in the JSON of the API.
func appendStatus(b []byte, status *shownStatus) ([]byte, error) {
	text, err := json.Marshal(status)
	return append(b, text...), err
}
