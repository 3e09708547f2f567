//! Accelerates a scenario for clusters, which run in real time.
//!
//! Every duration is divided: the controller's sync period and windows, the periods of policies,
//! the startup of pods, signals, the timeline. The same events then happen sooner. Expectations are
//! removed: they refer to the times of the original scenario.
//!
//! The API stores some durations in whole seconds. If such a duration is not divisible, the
//! scenario is rejected.

use std::num::NonZero;
use std::ops::RangeInclusive;

use serde_json::Value;

use super::autoscaler::BEHAVIOR_ANNOTATION;
use super::resolved::{
    Action, Autoscaler, Backlog, ExternalMetric, Metrics, Modified, Modifier, Noise, ObjectMetric,
    Scenario, Signal, Sine, UsageSource,
};
use kube_autoscaler_models::api::{ScalingPolicy, ScalingPolicyType, ScalingRules};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};

/// A field of an HPA with a duration in seconds.
#[derive(Clone)]
struct SecondsField {
    name: &'static str,
    /// The values that the API server accepts.
    valid: RangeInclusive<i64>,
}

/// Upstream: pkg/apis/autoscaling/validation/validation.go
const SECONDS: [SecondsField; 2] = [
    SecondsField { name: "stabilizationWindowSeconds", valid: 0..=3600 },
    SecondsField { name: "periodSeconds", valid: 1..=1800 },
];

/// The period of the policies that the API server fills in.
///
/// Upstream: pkg/apis/autoscaling/v2/defaults.go
const DEFAULT_PERIOD: i64 = 15;

impl Scenario {
    /// A copy of this scenario, accelerated by a factor.
    ///
    /// # Errors
    /// A duration that the API stores in whole seconds is not divisible by the factor.
    pub fn faster(&self, times: NonZero<u32>) -> Result<Scenario, String> {
        let speed = Speed(i64::from(times.get()));
        let mut scenario = self.clone();
        if speed.0 == 1 {
            return Ok(scenario);
        }
        let flags = &mut scenario.flags;
        for span in [
            &mut flags.sync_period,
            &mut flags.downscale_stabilization,
            &mut flags.cpu_initialization_period,
            &mut flags.initial_readiness_delay,
            &mut flags.upscale_delay,
            &mut flags.downscale_delay,
        ] {
            speed.span(span);
        }
        for hpa in &mut scenario.hpas {
            speed.autoscaler(hpa)?;
        }
        let workload = &mut scenario.workload;
        speed.span(&mut workload.age);
        speed.span(&mut workload.termination.duration);
        speed.span(&mut workload.termination.ready);
        speed.span(&mut workload.startup.metrics);
        workload.startup.pending.iter_mut().for_each(|span| speed.span(span));
        workload.startup.ready.iter_mut().for_each(|span| speed.span(span));
        for of in &mut workload.pods {
            of.age.iter_mut().chain(&mut of.sample_lag).for_each(|span| speed.span(span));
            if let Some(startup) = &mut of.startup {
                speed.span(&mut startup.metrics);
                let spans = startup.pending.iter_mut().chain(&mut startup.ready);
                spans.for_each(|span| speed.span(span));
            }
        }
        speed.metrics(&mut scenario.metrics);
        for event in &mut scenario.timeline {
            speed.time(&mut event.at);
            event.lasts.iter_mut().for_each(|span| speed.span(span));
            match &mut event.action {
                Action::EditHpa(patch) => speed.patch(patch)?,
                Action::MetricsSlow(span) | Action::CacheLag(span) => speed.span(span),
                _ => {}
            }
        }
        speed.time(&mut scenario.until);
        scenario.expect.clear();
        Ok(scenario)
    }
}

#[derive(Clone, Copy)]
struct Speed(i64);

impl Speed {
    fn span(self, span: &mut Span) {
        span.0 /= self.0;
    }

    fn time(self, time: &mut Time) {
        time.0 /= self.0;
    }

    /// Divides the durations of an HPA. The API server's defaults are set explicitly and divided as
    /// well.
    fn autoscaler(self, hpa: &mut Autoscaler) -> Result<(), String> {
        if hpa.has_behavior_annotation() {
            return Err(format!("its behavior is in the annotation {BEHAVIOR_ANNOTATION}"));
        }
        let Some(mut behavior) = hpa.spec.behavior.clone() else { return Ok(()) };
        let policy = |type_, value| {
            let period_seconds = (DEFAULT_PERIOD / self.0).max(1) as i32;
            ScalingPolicy { type_, value, period_seconds }
        };
        let percent = policy(ScalingPolicyType::Percent, 100);
        let pods = policy(ScalingPolicyType::Pods, 4);
        self.rules(&mut behavior.scale_up, vec![pods, percent.clone()])?;
        self.rules(&mut behavior.scale_down, vec![percent])?;
        hpa.set_behavior(behavior);
        Ok(())
    }

    fn rules(
        self,
        rules: &mut Option<ScalingRules>,
        default: Vec<ScalingPolicy>,
    ) -> Result<(), String> {
        let rules = rules.get_or_insert_default();
        let [window, period] = SECONDS;
        if let Some(seconds) = &mut rules.stabilization_window_seconds {
            *seconds = self.whole_seconds(window, i64::from(*seconds))? as i32;
        }
        match &mut rules.policies {
            Some(policies) => {
                for policy in policies {
                    let seconds = i64::from(policy.period_seconds);
                    policy.period_seconds = self.whole_seconds(period.clone(), seconds)? as i32;
                }
            }
            None => rules.policies = Some(default),
        }
        Ok(())
    }

    /// Divides a field in seconds. A value that the API server rejects stays unchanged.
    fn whole_seconds(self, field: SecondsField, seconds: i64) -> Result<i64, String> {
        let SecondsField { name, valid } = field;
        if !valid.contains(&seconds) {
            return Ok(seconds);
        }
        if seconds % self.0 != 0 {
            return Err(format!("its {name} of {seconds} is not divisible by {}", self.0));
        }
        Ok(seconds / self.0)
    }

    /// Divides all durations in seconds of a merge patch.
    fn patch(self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let field = SECONDS.into_iter().find(|field| field.name == name);
                    match value.as_i64().zip(field) {
                        Some((seconds, field)) => {
                            *value = self.whole_seconds(field, seconds)?.into();
                        }
                        None => self.patch(value)?,
                    }
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.patch(value)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn metrics(self, metrics: &mut Metrics) {
        let Metrics { resources, pods, objects, externals, sampling } = metrics;
        for resource in resources {
            self.source(&mut resource.source);
            resource.exceptions.iter_mut().for_each(|other| self.signal(&mut other.value));
        }
        for metric in pods {
            self.source(&mut metric.source);
            metric.exceptions.iter_mut().for_each(|other| self.signal(&mut other.value));
        }
        objects.iter_mut().flat_map(ObjectMetric::signals_mut).for_each(|it| self.signal(it));
        externals.iter_mut().flat_map(ExternalMetric::signals_mut).for_each(|it| self.signal(it));
        // The API transmits windows in whole seconds.
        sampling.window.0 =
            Span::from_secs((sampling.window.as_secs_f64() as i64 / self.0).max(1)).0;
        self.span(&mut sampling.lag);
        sampling.resolution.iter_mut().for_each(|span| self.span(span));
    }

    fn source(self, source: &mut UsageSource) {
        match source {
            UsageSource::PerPod(signal) | UsageSource::Load { total: signal, .. } => {
                self.signal(signal);
            }
            UsageSource::PerContainer(signals) => {
                signals.0.iter_mut().for_each(|(_, signal)| self.signal(signal));
            }
        }
    }

    fn signal(self, signal: &mut Signal) {
        match signal {
            Signal::Constant(_) => {}
            Signal::Steps(points) | Signal::Points(points) => {
                points.iter_mut().for_each(|point| self.time(&mut point.at));
            }
            Signal::Sine(Sine { period, offset, .. }) => {
                self.span(period);
                self.span(offset);
            }
            Signal::Sum(_) => {}
            // A queue keeps its length if all its rates are multiplied by the speed.
            Signal::Backlog(Backlog { arrivals, per_pod: Some(per_pod), .. }) => {
                let factor = Quantity::from_milli(self.0.saturating_mul(1000), Format::DecimalSI);
                let milli = per_pod.milli().saturating_mul(self.0);
                *per_pod = Quantity::from_milli(milli, Format::DecimalSI);
                let of = std::mem::replace(arrivals, Box::new(Signal::zero()));
                let by = Modifier::Factor(Box::new(Signal::Constant(factor)));
                **arrivals = Signal::Modified(Modified { by, of });
            }
            // The initial work takes less time, as all durations do. The load does not change.
            Signal::Backlog(Backlog { initial: Some(initial), .. }) => {
                *initial = Quantity::from_milli(initial.milli() / self.0, Format::DecimalSI);
            }
            Signal::Backlog(_) => {}
            Signal::Modified(modified) => match &mut modified.by {
                Modifier::Noise(Noise { every: span, .. })
                | Modifier::Shift(span)
                | Modifier::Repeat(span) => self.span(span),
                Modifier::Factor(_) => {}
            },
            Signal::Recorded(recorded) => {
                let mut samples = recorded.samples.to_vec();
                samples.iter_mut().for_each(|sample| self.time(&mut sample.at));
                recorded.samples = samples.into();
            }
        }
        signal.parts_mut().into_iter().for_each(|part| self.signal(part));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{WEB, scenario};

    fn text() -> String {
        let target = "target: {type: AverageValue, averageValue: 500m}}";
        let down = "target: {type: Utilization, averageUtilization: 50}}
    behavior:
      scaleDown: {stabilizationWindowSeconds: 300}";
        let containers = "  containers:";
        let startup = "  startup: {pending: 15s, ready: 30s}\n  containers:";
        let text = WEB.replace(target, down).replace(containers, startup);
        format!("{text}timeline: [{{at: 30s, podsUnready: all, for: 1m}}]\n")
    }

    #[test]
    fn all_durations_are_divided() {
        let faster = scenario(&text()).faster(NonZero::new(15).expect("15")).expect("it divides");
        assert_eq!(faster.flags.sync_period, Span::from_secs(1));
        assert_eq!(faster.flags.downscale_stabilization, Span::from_secs(20));
        assert_eq!(faster.until, Time::from_secs(8));
        assert_eq!(faster.timeline[0].at, Time::from_secs(2));
        assert_eq!(faster.timeline[0].lasts, Some(Span::from_secs(4)));
        assert_eq!(faster.workload.startup.ready, Some(Span::from_secs(2)));
        let behavior = &faster.hpas[0].manifest["spec"]["behavior"];
        assert_eq!(behavior["scaleDown"]["stabilizationWindowSeconds"], 20);
        // The API server's default is 15 s.
        assert_eq!(behavior["scaleDown"]["policies"][0]["periodSeconds"], 1);
        assert_eq!(behavior["scaleUp"]["policies"][1]["periodSeconds"], 1);
    }

    #[test]
    fn speed_1_does_not_change_a_scenario() {
        let scenario = scenario(&text());
        let same = scenario.faster(NonZero::<u32>::MIN).expect("1 divides all");
        assert_eq!(format!("{same:?}"), format!("{scenario:?}"));
    }

    #[test]
    fn indivisible_durations_are_rejected() {
        let text =
            text().replace("stabilizationWindowSeconds: 300", "stabilizationWindowSeconds: 50");
        let error = scenario(&text).faster(NonZero::new(15).expect("15")).expect_err("50 / 15");
        assert_eq!(error, "its stabilizationWindowSeconds of 50 is not divisible by 15");
    }

    #[test]
    fn acceleration_keeps_invalid_hpas_invalid() {
        let mut edit = json!({
            "scaleUp": { "stabilizationWindowSeconds": -1 },
            "scaleDown": {
                "stabilizationWindowSeconds": 3601,
                "policies": [{ "periodSeconds": 1801 }],
            },
        });
        let wrong = edit.clone();
        assert_eq!(Speed(15).patch(&mut edit), Ok(()));
        assert_eq!(edit, wrong);
        edit["scaleDown"]["stabilizationWindowSeconds"] = 3600.into();
        assert_eq!(Speed(15).patch(&mut edit), Ok(()));
        assert_eq!(edit["scaleDown"]["stabilizationWindowSeconds"], 240);
    }
}
