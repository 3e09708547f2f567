//! The columns of a comparison: its figures with their names, units and meanings.

use std::fmt;
use std::str::FromStr;

use super::bound::number;
use super::figures::Figures;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::error::similar;

/// A column of figures.
#[derive(Clone, Copy)]
pub struct Column {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(super) unit: Unit,
    /// None: the figure does not apply.
    figure: fn(&Figures) -> Option<f64>,
}

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    PodHours,
    CoreHours,
    GibHours,
    /// In seconds.
    Time,
    Count,
    /// In the unit of the prices.
    Money,
}

impl Unit {
    /// Returns true if it is an amount that adds up over time.
    fn is_sum(self) -> bool {
        matches!(self, Unit::PodHours | Unit::CoreHours | Unit::GibHours | Unit::Money)
    }

    /// A figure as text. Counts have this number of digits after the point.
    pub(super) fn text(self, figure: f64, digits: usize) -> String {
        match self {
            Unit::PodHours | Unit::CoreHours | Unit::GibHours => format!("{figure:.2}"),
            // Prices of an hour can be far below 1.
            Unit::Money if figure.abs() < 1.0 => format!("{figure:.4}"),
            Unit::Money => format!("{figure:.2}"),
            Unit::Time => Span::from_secs(figure.round() as i64).to_string(),
            Unit::Count => format!("{figure:.digits$}"),
        }
    }
}

impl Column {
    /// The name of the column.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The figure, in pod-hours, core-hours, GiB-hours, seconds, or the unit of the prices. None:
    /// it does not apply.
    #[must_use]
    pub fn figure(&self, figures: &Figures) -> Option<f64> {
        (self.figure)(figures)
    }

    /// Returns true if the figures contain this one: some require an HPA, a VPA or prices.
    #[must_use]
    pub fn applies(&self, figures: &Figures) -> bool {
        self.figure(figures).is_some()
    }

    /// The figure as text, for tables.
    #[must_use]
    pub fn text(&self, figures: &Figures) -> String {
        self.text_of(self.figure(figures), 0)
    }

    /// A figure as text, for tables. Counts have this number of digits after the point.
    pub(super) fn text_of(&self, figure: Option<f64>, digits: usize) -> String {
        figure.map_or_else(|| "-".to_owned(), |figure| self.unit.text(figure, digits))
    }

    /// A figure of this column as text.
    pub(crate) fn figure_text(&self, figure: f64) -> String {
        self.unit.text(figure, 0)
    }

    /// The difference between two figures as text: `+5.3%`, `-2m`, `+3`. Empty: they are equal, or
    /// only one of them exists.
    #[must_use]
    pub fn difference_text(&self, base: &Figures, head: &Figures) -> String {
        let Some((from, to)) = self.figure(base).zip(self.figure(head)) else {
            return String::new();
        };
        let difference = to - from;
        if self.text(base) == self.text(head) {
            return String::new();
        }
        match self.unit {
            unit if unit.is_sum() && from != 0.0 => {
                format!("{:+.1}%", 100.0 * difference / from)
            }
            unit => {
                let sign = if difference < 0.0 { "-" } else { "+" };
                format!("{sign}{}", unit.text(difference.abs(), 0))
            }
        }
    }

    /// A figure as text that [`Column::parse`] reads, without rounding.
    pub(crate) fn exact_text(&self, figure: f64) -> String {
        match self.unit {
            Unit::Time => Span((figure * 1e9).round() as i64).to_string(),
            _ => figure.to_string(),
        }
    }

    /// A figure for messages.
    pub(crate) fn example(&self) -> f64 {
        match self.unit {
            Unit::Time => 300.0,
            Unit::Count => 5.0,
            _ => 0.5,
        }
    }

    /// Reads a figure without a sign.
    pub(crate) fn parse(&self, text: &str) -> Option<f64> {
        match self.unit {
            Unit::Time => {
                let span: Span = text.parse().ok()?;
                text.starts_with(|first: char| first.is_ascii_digit()).then(|| span.as_secs_f64())
            }
            _ => number(text),
        }
    }
}

/// By its name.
impl FromStr for Column {
    type Err = String;

    fn from_str(name: &str) -> Result<Column, String> {
        let all = || COLUMNS.into_iter().chain(REQUESTS);
        all().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = all().map(|column| column.name).collect();
            let hint = match similar(name, names.iter().copied()) {
                Some(hint) => hint.to_string(),
                None => format!("the figures are {}", names.join(", ")),
            };
            format!("there is no figure `{name}`; {hint}")
        })
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! columns {
    ($($name:tt $unit:ident $figure:expr, $meaning:literal;)*) => {
        [$(Column { name: $name, meaning: $meaning, unit: Unit::$unit, figure: $figure }),*]
    };
}

/// The name of the column that requires prices.
pub const COST: &str = "cost";

/// The columns of the table.
pub const COLUMNS: [Column; 11] = columns![
    "pod-hours" PodHours |it| Some(it.pod_hours),
        "the number of replicas, added up over time: the cost of the workload";
    COST Money |it| it.cost,
        "with --price, the price of these pod-hours; with a VPA, by the requests at each time";
    "missing" PodHours |it| Some(it.scaling?.missing_pod_hours),
        "pod-hours by which the ready pods are fewer than the load needs to be at the targets of \
         the first setting, or at --capacity";
    "above" Time |it| Some(it.scaling?.above_target_seconds),
        "the time during which the load per ready pod is above a target of the first setting, \
         beyond the tolerance, or above --capacity";
    "longest" Time |it| Some(it.scaling?.longest_above_target_seconds),
        "the longest such time without interruption: the time to recover";
    "changes" Count |it| Some(it.scaling?.changes as f64),
        "how often the controller changes the replicas";
    "reversals" Count |it| Some(it.scaling?.direction_changes as f64),
        "how often it changes the direction: up after down, or down after up";
    "excess" Count |it| Some(it.scaling?.excess_replicas.into()),
        "the largest number of replicas above what the load needs, for example while a \
         stabilization window holds them";
    "needed" Count |it| Some(it.scaling?.needed_peak_replicas.into()),
        "the largest number of replicas that the load needs to be at the targets of the first \
         setting, or at --capacity";
    "peak" Count |it| Some(it.peak_replicas.into()), "the largest number of replicas";
    "failed" Time |it| Some(it.scaling?.failed_seconds),
        "the total time from each reconcile that failed, or in which a metric failed, to the next \
         reconcile";
];

/// The causes of missing pod-hours: columns of a second table.
pub(super) const CAUSES: [Column; 8] = columns![
    "maximum" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.maximum),
        "the load needs more than `maxReplicas`";
    "policy" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.policy),
        "a policy limits the scale-up; without `behavior`, twice the replicas or 4";
    "window" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.window),
        "a stabilization window delays the scale-up, or in old releases a forbidden window";
    "start-up" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.start_up),
        "replicas have no ready pod: it starts, is replaced or has failed, or there is no room";
    "sync period" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.sync_period),
        "the need has risen since the last reconcile";
    "target" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.target),
        "the target of the setting is higher than that of the first one";
    "tolerance" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.tolerance),
        "the metric is within the tolerance, so the controller changes nothing";
    "other" PodHours |it| Some(it.scaling?.missing_pod_hours_by_cause.other),
        "the controller proposes less than the load needs, because metrics are late, missing or \
         failed, or pods that are not ready count as zero; or it can't scale";
];

/// The figures of the requests that a VPA sets: columns of a table of their own.
pub(super) const REQUESTS: [Column; 10] = columns![
    "cpu-requested" CoreHours |it| Some(it.requests?.cpu.requested),
        "the CPU requests of all pods, added up over time, in core-hours";
    "cpu-unused" CoreHours |it| Some(it.requests?.cpu.unused),
        "the part of the containers' CPU requests that they do not use";
    "cpu-short" CoreHours |it| Some(it.requests?.cpu.short),
        "the CPU usage of containers above their requests, in core-hours";
    "memory-requested" GibHours |it| Some(it.requests?.memory.requested),
        "the memory requests of all pods, added up over time, in GiB-hours";
    "memory-unused" GibHours |it| Some(it.requests?.memory.unused),
        "the part of the containers' memory requests that they do not use";
    "memory-short" GibHours |it| Some(it.requests?.memory.short),
        "the memory usage of containers above their requests, in GiB-hours";
    "short" PodHours |it| Some(it.requests?.short_pod_hours),
        "pod-hours during which a container uses more CPU or memory than it requests";
    "oom-kills" Count |it| Some(it.requests?.oom_kills as f64),
        "how often the memory usage of a container rises above its limit, and the `oomKill` events \
         of the scenario";
    "evictions" Count |it| Some(it.requests?.evictions as f64),
        "how many pods the updater evicts";
    "resizes" Count |it| Some(it.requests?.resizes as f64),
        "how many pods the updater resizes in place";
];
