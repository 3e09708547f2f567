//! The derivation of one metric as text: part of `explain`.

use std::fmt::{self, Write};

use super::{
    Filled, MetricDerivation, Path, SecondRatio, Source, Target, Usage, count_of_pods,
    count_of_replicas,
};
use crate::quantity::{Format, Quantity, human};
use crate::rules::Within;

/// A total that is divided by the pods.
struct Spread {
    /// The target for each pod.
    target: i64,
    /// `status.replicas` of the scale.
    replicas: i32,
    /// The current replicas.
    current: i32,
    proposal: i32,
}

impl MetricDerivation {
    /// The name for users: `cpu`, `cpu of container app`, `rps of Ingress main`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = &self.name;
        match &self.source {
            Source::Resource | Source::Pods | Source::External => name.to_string(),
            Source::ContainerResource(container) => format!("{name} of container {container}"),
            Source::Object(object) => format!("{name} of {} {}", object.kind, object.name),
        }
    }

    /// Returns true if the metric is one total rather than a sum over pods.
    #[must_use]
    pub fn is_total(&self) -> bool {
        matches!(self.source, Source::Object(_) | Source::External)
    }

    /// The resource, if the metric is that of a resource.
    fn resource(&self) -> Option<&str> {
        let is_resource = matches!(self.source, Source::Resource | Source::ContainerResource(_));
        is_resource.then_some(&*self.name)
    }

    /// Returns true if the amounts of the metric are bytes.
    #[must_use]
    pub fn is_in_bytes(&self) -> bool {
        self.resource() == Some("memory")
    }

    /// An amount in thousandths, for people: `1500m` of cpu, `204.8Mi` of memory, `285.7` of
    /// another metric.
    #[must_use]
    pub fn amount(&self, milli: i64) -> String {
        match self.resource() {
            Some("cpu") => Quantity::from_milli(milli, Format::DecimalSI).to_string(),
            Some("memory") => human::bytes(milli as f64),
            _ => human::decimal(milli),
        }
    }

    pub(crate) fn summary(&self) -> String {
        let mut text = match &self.source {
            Source::Resource | Source::ContainerResource(_) => "resource ",
            Source::Pods => "pods metric ",
            Source::Object(_) => "metric ",
            Source::External => "external metric ",
        }
        .to_owned();
        text.push_str(&self.title());
        if let Some(usage) = &self.usage {
            let _ = write!(text, " {}", Compared { metric: self, usage });
            let _ = write!(text, " (ratio {}", Ratio(usage.ratio));
            if self.is_total() {
                self.summarize_total(usage, &mut text);
            } else {
                self.summarize_pods(usage, &mut text);
            }
            text.push(')');
        }
        if let Some(error) = &self.error {
            let _ = write!(text, " failed: {error}");
        }
        if let Some(proposal) = self.proposal {
            text.push_str(match self.path {
                Path::WithinTolerance => ", within tolerance",
                Path::SecondWithinTolerance => ", recalculated within tolerance",
                Path::SecondReversed | Path::CountReversed => ", direction would change",
                Path::Failed
                | Path::Ready
                | Path::Replicas
                | Path::Second
                | Path::FromZero
                | Path::Total => "",
            });
            let _ = write!(text, " -> {proposal}");
        }
        text
    }

    fn summarize_pods(&self, usage: &Usage, text: &mut String) {
        if let Some(second) = &usage.second {
            let _ = write!(text, ", recalculated {}", Ratio(second.ratio));
        }
        let _ = write!(text, ", {} ready", self.pods.ready);
        for (count, what) in [
            (self.pods.unready, "unready"),
            (self.pods.missing, "missing"),
            (self.pods.ignored, "ignored"),
            (self.pods.unknown, "unknown"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
    }

    fn summarize_total(&self, usage: &Usage, text: &mut String) {
        match (usage.status_replicas, self.path) {
            (Some(replicas), _) => {
                let _ =
                    write!(text, ", {} over {}", self.amount(usage.total), count_of_pods(replicas));
            }
            (None, Path::FromZero) => text.push_str(", from 0 replicas"),
            (None, Path::Ready) => {
                let _ = write!(text, ", {} ready", self.pods.ready);
            }
            (None, _) => {}
        }
    }

    /// The steps from the values to a proposal.
    pub fn explain(&self, current: i32, steps: &mut Vec<String>) {
        if let Some(error) = &self.error {
            steps.push(format!("Metric {} fails: {error}.", self.title()));
        }
        let (Some(usage), Some(proposal)) = (&self.usage, self.proposal) else {
            return;
        };
        if self.is_total() {
            self.explain_total(usage, current, proposal, steps);
        } else {
            self.explain_pods(usage, current, proposal, steps);
        }
        if proposal == i32::MIN {
            steps.push(format!(
                "Upstream converts a number that is out of range, or not a number, to a 32-bit \
                 integer: the result is {proposal}."
            ));
        }
    }

    fn explain_pods(&self, usage: &Usage, current: i32, proposal: i32, steps: &mut Vec<String>) {
        let (name, pods) = (self.title(), &self.pods);
        steps.push(format!(
            "Metric {name}: {} counted, {} not ready, {} without a metric, {} failed or \
             terminating.",
            count_of_pods(pods.ready),
            pods.unready,
            pods.missing,
            pods.ignored
        ));
        if self.source == Source::Pods {
            steps.push(
                "For a custom metric, each pod with a value that is not Pending is counted, ready \
                 or not."
                    .to_owned(),
            );
        }
        if pods.unknown > 0 && !matches!(self.target, Target::Utilization(_)) {
            steps.push(format!(
                "{} more values belong to pods that the controller does not know; they count \
                 towards the average.",
                pods.unknown
            ));
        }
        steps.push(self.explain_usage(usage));
        if let Some(second) = &usage.second {
            steps.push(self.explain_second(second));
        }
        steps.push(self.explain_proposal(usage, current, proposal));
    }

    fn explain_usage(&self, usage: &Usage) -> String {
        match self.target {
            Target::Utilization(target) => format!(
                "They use {} of the requested {}: {}%, rounded down; the target is {target}%. The \
                 ratio is {}.",
                self.amount(usage.total),
                self.amount(usage.requests),
                usage.utilization.unwrap_or(0),
                Ratio(usage.ratio)
            ),
            Target::AverageValue(target) => {
                let verb = if self.source == Source::Pods { "have" } else { "use" };
                format!(
                    "They {verb} {} in total, {} each; the target is {}. The ratio is {}.",
                    self.amount(usage.total),
                    self.amount(usage.average),
                    self.amount(target),
                    Ratio(usage.ratio)
                )
            }
            Target::Value(_) | Target::None => String::new(),
        }
    }

    fn explain_proposal(&self, usage: &Usage, current: i32, proposal: i32) -> String {
        let name = self.title();
        let ratio = usage.second.as_ref().map_or(usage.ratio, |second| second.ratio);
        let bounds = self.bounds(ratio);
        match (self.path, &usage.second) {
            (Path::WithinTolerance | Path::SecondWithinTolerance, _) => format!(
                "That is within the tolerance, {bounds}: {name} proposes no change, \
                 {proposal}."
            ),
            (Path::SecondReversed, _) => format!(
                "With these pods, scaling would be in the other direction: {name} proposes no \
                 change, {proposal}."
            ),
            (Path::CountReversed, Some(second)) => format!(
                "That makes {} for {}, which is against the direction of the ratio with {}: \
                 {name} proposes no change, {proposal}.",
                second.proposal,
                count_of_pods(second.pods),
                count_of_replicas(current)
            ),
            (_, Some(second)) => format!(
                "That is outside the tolerance, {bounds}: {name} proposes {} × {}, \
                 rounded up: {proposal}.",
                Ratio(second.ratio),
                count_of_pods(second.pods)
            ),
            (_, None) => format!(
                "That is outside the tolerance, {bounds}: {name} proposes {} × {}, \
                 rounded up: {proposal}.",
                Ratio(usage.ratio),
                count_of_pods(self.pods.ready)
            ),
        }
    }

    /// The range of ratios within the tolerance: `0.9 to 1.1`.
    fn bounds(&self, ratio: f64) -> String {
        let (down, up) = self.tolerances;
        match self.within {
            Within::Bounds => format!("{} to {}", Ratio(1.0 - down), Ratio(1.0 + up)),
            // With all decimals, because the rounding of the difference is decisive at the edge.
            Within::Distance => {
                format!("{up} on either side of 1 (the ratio is {} away)", (1.0 - ratio).abs())
            }
        }
    }

    fn explain_second(&self, second: &SecondRatio) -> String {
        let mut filled = Vec::new();
        if self.pods.missing > 0 {
            let count = self.pods.missing;
            filled.push(match second.missing_as {
                Some(Filled::Percent(percent)) => {
                    format!("{count} without a metric as using {percent}% of their requests")
                }
                Some(Filled::Target) => format!("{count} without a metric as using the target"),
                Some(Filled::Zero) => format!("{count} without a metric as using nothing"),
                None => format!("{count} without a metric not at all"),
            });
        }
        if second.unready_as_zero {
            filled.push(format!("{} not ready as using nothing", self.pods.unready));
        }
        format!(
            "As a precaution, more pods are counted: {}. The ratio of {} is then {}.",
            filled.join(", "),
            count_of_pods(second.pods),
            Ratio(second.ratio)
        )
    }

    fn explain_total(&self, usage: &Usage, current: i32, proposal: i32, steps: &mut Vec<String>) {
        let (title, total) = (self.title(), self.amount(usage.total));
        steps.push(match usage.series {
            Some(1) => format!("Metric {title} has one series; its value is {total}."),
            Some(series) => format!("Metric {title} has {series} series; their sum is {total}."),
            None => format!("Metric {title} is {total}."),
        });
        if usage.series.is_some() && usage.total == i64::MAX {
            steps.push(
                "That is the largest sum: upstream uses it for sums that are too large and, with \
                 an average value as the target, for negative sums."
                    .to_owned(),
            );
        }
        match (self.target, usage.status_replicas) {
            (Target::AverageValue(target), Some(replicas)) => {
                let spread = Spread { target, replicas, current, proposal };
                self.explain_spread(usage, &spread, steps);
                self.explain_spread_proposal(usage, &spread, steps);
            }
            (Target::Value(target), _) => {
                let ratio = Ratio(usage.ratio);
                steps.push(format!(
                    "The target is {} in total. The ratio is {ratio}.",
                    self.amount(target)
                ));
                self.explain_whole_proposal(usage, proposal, steps);
            }
            _ => {}
        }
    }

    fn explain_spread(&self, usage: &Usage, spread: &Spread, steps: &mut Vec<String>) {
        let Spread { target, replicas, .. } = *spread;
        let (target, ratio) = (self.amount(target), Ratio(usage.ratio));
        steps.push(if replicas == 0 {
            format!(
                "The target is {target} per pod. There are no pods (status.replicas of the target \
                 is 0), so the total is divided by 0: the ratio is {ratio}, and the status shows \
                 {} as the average.",
                self.amount(usage.average)
            )
        } else {
            format!(
                "Over {} (status.replicas of the target, ready or not), that makes {} each; the \
                 target is {target}. The ratio is {ratio}.",
                count_of_pods(replicas),
                self.amount(usage.average)
            )
        });
    }

    fn explain_spread_proposal(&self, usage: &Usage, spread: &Spread, steps: &mut Vec<String>) {
        let Spread { target, replicas, current, proposal } = *spread;
        let (name, bounds) = (self.title(), self.bounds(usage.ratio));
        if self.path == Path::WithinTolerance {
            steps.push(format!(
                "That is within the tolerance, {bounds}: {name} proposes the current number of \
                 pods, {proposal}."
            ));
            if replicas != current {
                steps.push(format!(
                    "Note that this is status.replicas, not spec.replicas, which is {current}: \
                     while the two differ, a metric that is on target changes the replicas."
                ));
            }
            return;
        }
        let capped =
            if proposal == i32::MAX { ", limited to the largest 32-bit integer" } else { "" };
        steps.push(format!(
            "That is outside the tolerance, {bounds}: {name} proposes {} / {}, rounded \
             up{capped}: {proposal}. The number of pods does not matter.",
            self.amount(usage.total),
            self.amount(target)
        ));
    }

    fn explain_whole_proposal(&self, usage: &Usage, proposal: i32, steps: &mut Vec<String>) {
        let (name, bounds) = (self.title(), self.bounds(usage.ratio));
        let (ratio, ready) = (Ratio(usage.ratio), self.pods.ready);
        let capped =
            if proposal == i32::MAX { ", limited to the largest 32-bit integer" } else { "" };
        steps.push(match self.path {
            Path::FromZero => format!(
                "With 0 replicas there are no pods to multiply it with and no tolerance: {name} \
                 proposes the ratio, rounded up: {proposal}."
            ),
            Path::WithinTolerance => format!(
                "That is within the tolerance, {bounds}: {name} proposes no change, \
                 {proposal}."
            ),
            _ => format!(
                "That is outside the tolerance, {bounds}: {name} proposes {ratio} × {ready} \
                 running and ready pods, rounded up{capped}: {proposal}."
            ),
        });
        if self.path == Path::Ready && ready == 0 {
            steps.push("No pod is ready, so that is 0 for any ratio.".to_owned());
        }
    }
}

/// `40% of 50%`, `800m of 1`.
struct Compared<'a> {
    metric: &'a MetricDerivation,
    usage: &'a Usage,
}

impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metric.target {
            Target::Utilization(target) => {
                write!(f, "{}% of {target}%", self.usage.utilization.unwrap_or(0))
            }
            Target::AverageValue(target) => {
                write!(
                    f,
                    "{} of {}",
                    self.metric.amount(self.usage.average),
                    self.metric.amount(target)
                )
            }
            Target::Value(target) => {
                write!(
                    f,
                    "{} of {}",
                    self.metric.amount(self.usage.total),
                    self.metric.amount(target)
                )
            }
            Target::None => Ok(()),
        }
    }
}

/// A ratio with at most four decimals. Ratios close to a round number are shown with all decimals,
/// because they are probably at a boundary, and the last decimals show on which side.
struct Ratio(f64);

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let round = (self.0 * 100.0).round() / 100.0;
        if self.0 != round && (self.0 - round).abs() < 1e-4 {
            return write!(f, "{}", self.0);
        }
        let text = format!("{:.4}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}
