package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/monitor"
	"kube-lockstep.dev/sdk/lockstep"
)

// subsystem is the prefix of the names of the controller's metrics.
const subsystem = "horizontal_pod_autoscaler_controller_"

// ownMetrics reports the changes of the controller's own Prometheus metrics, as docs/protocol.md
// describes them.
type ownMetrics struct {
	values map[string]float64 // as last reported, by series
}

// ended reports whether a reconcile has ended since the last report. Until then, metrics wait.
func (m *ownMetrics) ended(families []*dto.MetricFamily) bool {
	for _, family := range families {
		switch name := strings.TrimPrefix(family.GetName(), subsystem); name {
		case "reconciliations_total", "stale_sync_skips_total":
			for _, metric := range family.Metric {
				if metric.Counter.GetValue() != m.values[name+joined(metric.Label)] {
					return true
				}
			}
		}
	}
	return false
}

// newOwnMetrics begins with a new controller.
func newOwnMetrics() *ownMetrics {
	// Resets all metrics with labels. There is one without.
	legacyregistry.Reset()
	monitor.NumHorizontalPodAutoscalers.Set(0)
	return &ownMetrics{values: map[string]float64{}}
}

func (m *ownMetrics) changes() (list []lockstep.MetricChange) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil || !m.ended(families) {
		return nil
	}
	counters := map[string]float64{} // those that have changed, by labels
	for _, family := range families {
		name, ok := strings.CutPrefix(family.GetName(), subsystem)
		if !ok {
			continue
		}
		for _, metric := range family.Metric {
			labels := joined(metric.Label)
			switch {
			case metric.Counter != nil:
				if value := metric.Counter.GetValue(); value != m.values[name+labels] {
					counters[labels] = value
					list = m.increase(list, name+labels, value)
				}
			case metric.Gauge != nil:
				value := metric.Gauge.GetValue()
				if last, known := m.values[name+labels]; last != value || !known && labels != "" {
					list = append(list, lockstep.MetricChange{Series: name + labels, Value: text(value)})
				}
				m.values[name+labels] = value
			}
		}
	}
	for _, family := range families {
		if name, ok := strings.CutPrefix(family.GetName(), subsystem); ok {
			list = m.histograms(list, name, family.Metric, counters)
		}
	}
	slices.SortFunc(
		list,
		func(a, b lockstep.MetricChange) int { return cmp.Compare(a.Series, b.Series) },
	)
	return list
}

// histograms reports the sums of the histograms whose counter, with the same labels, has changed,
// and their numbers of observations if they are not the value of the counter.
func (m *ownMetrics) histograms(
	list []lockstep.MetricChange, name string, metrics []*dto.Metric, counters map[string]float64,
) []lockstep.MetricChange {
	for _, metric := range metrics {
		labels := joined(metric.Label)
		counted, changed := counters[labels]
		if metric.Histogram == nil || !changed {
			continue
		}
		// Durations are whole nanoseconds, but sums are floating-point numbers.
		sum := math.Round(metric.Histogram.GetSampleSum()*1e9) / 1e9
		list = m.increase(list, name+"_sum"+labels, sum)
		if more := float64(metric.Histogram.GetSampleCount()) - counted; more != 0 {
			list = append(
				list,
				lockstep.MetricChange{Series: name + "_count" + labels, Increase: text(more)},
			)
		}
	}
	return list
}

func (m *ownMetrics) increase(
	list []lockstep.MetricChange, series string, value float64,
) []lockstep.MetricChange {
	increase := math.Round((value-m.values[series])*1e9) / 1e9
	m.values[series] = value
	if increase == 0 {
		return list
	}
	return append(list, lockstep.MetricChange{Series: series, Increase: text(increase)})
}

func text(value float64) json.Number {
	return json.Number(strconv.FormatFloat(value, 'f', -1, 64))
}

// joined returns labels in alphabetical order, without quotation marks.
func joined(labels []*dto.LabelPair) string {
	if len(labels) == 0 {
		return ""
	}
	list := make([]string, len(labels))
	for i, label := range labels {
		list[i] = fmt.Sprintf("%s=%s", label.GetName(), label.GetValue())
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ",") + "}"
}
