package virtual

import "time"

// The changes of the responses of the metrics APIs.

type podMetricsChange struct {
	timestamp, window *time.Duration
	set               []sample
	delete            []string
}

type sample struct {
	pod, template string
	timestamp     *time.Duration
	containers    []usage
}

type usage struct {
	container string
	resources [][2]string
}

type podsMetricChange struct {
	metric string
	labels map[string]string
	values []podValue
	err    *apiError
}

type podValue struct {
	pod, template, value string
	timestamp            time.Duration
	window               *time.Duration
}

type objectMetricChange struct {
	metric, kind, name string
	series             []series
	err                *apiError
}

type externalMetricChange struct {
	metric string
	series []series
	err    *apiError
}

type series struct {
	labels    map[string]string
	value     string
	timestamp time.Duration
}

func (r *reader) podMetrics() *podMetricsChange {
	c := &podMetricsChange{}
	r.object(func(key string) {
		switch key {
		case "timestamp":
			c.timestamp = r.durationPointer()
		case "window":
			c.window = r.durationPointer()
		case "set":
			r.array(func() { c.set = append(c.set, r.sample()) })
		case "delete":
			c.delete = r.strings()
		default:
			r.unknown(key)
		}
	})
	return c
}

func (r *reader) sample() sample {
	var s sample
	r.object(func(key string) {
		switch key {
		case "pod":
			s.pod = r.str()
		case "template":
			s.template = r.str()
		case "timestamp":
			s.timestamp = r.durationPointer()
		case "containers":
			r.array(func() { s.containers = append(s.containers, r.usage()) })
		default:
			r.unknown(key)
		}
	})
	return s
}

func (r *reader) usage() usage {
	var u usage
	r.object(func(key string) {
		switch key {
		case "name":
			u.container = r.str()
		case "usage":
			r.array(func() {
				r.expect('[')
				name := r.str()
				r.expect(',')
				u.resources = append(u.resources, [2]string{name, r.str()})
				r.expect(']')
			})
		default:
			r.unknown(key)
		}
	})
	return u
}

func (r *reader) podsMetric() *podsMetricChange {
	c := &podsMetricChange{}
	r.object(func(key string) {
		switch key {
		case "metric":
			c.metric = r.str()
		case "labels":
			c.labels = r.stringMap()
		case "values":
			r.array(func() { c.values = append(c.values, r.podValue()) })
		case "error":
			c.err = r.apiError()
		default:
			r.unknown(key)
		}
	})
	return c
}

func (r *reader) podValue() podValue {
	var v podValue
	r.object(func(key string) {
		switch key {
		case "pod":
			v.pod = r.str()
		case "template":
			v.template = r.str()
		case "value":
			v.value = r.str()
		case "timestamp":
			v.timestamp = r.duration()
		case "window":
			v.window = r.durationPointer()
		default:
			r.unknown(key)
		}
	})
	return v
}

func (r *reader) objectMetric() *objectMetricChange {
	c := &objectMetricChange{}
	r.object(func(key string) {
		switch key {
		case "metric":
			c.metric = r.str()
		case "kind":
			c.kind = r.str()
		case "name":
			c.name = r.str()
		case "series":
			c.series = r.seriesList()
		case "error":
			c.err = r.apiError()
		default:
			r.unknown(key)
		}
	})
	return c
}

func (r *reader) externalMetric() *externalMetricChange {
	c := &externalMetricChange{}
	r.object(func(key string) {
		switch key {
		case "metric":
			c.metric = r.str()
		case "series":
			c.series = r.seriesList()
		case "error":
			c.err = r.apiError()
		default:
			r.unknown(key)
		}
	})
	return c
}

func (r *reader) seriesList() (list []series) {
	r.array(func() {
		var s series
		r.object(func(key string) {
			switch key {
			case "labels":
				s.labels = r.stringMap()
			case "value":
				s.value = r.str()
			case "timestamp":
				s.timestamp = r.duration()
			default:
				r.unknown(key)
			}
		})
		list = append(list, s)
	})
	return list
}
