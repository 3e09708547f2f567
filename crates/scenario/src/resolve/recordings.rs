//! Fills the recorded signals of a scenario from their files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Reader;
use super::cursor::{At, Problems};
use crate::diagnostic::{Diagnostic, Kind};
use crate::error::unreadable;
use crate::recorded::{Recorded, RecordedSample};
use crate::recording::{Clock, Recording, Shown, Signals, Timestamp, Used};
use crate::resolved::{
    Exception, Metrics, Modified, Modifier, PodSet, ResourceUsage, Series, Signal, UsageSource,
};
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};

/// The difference between the seeds of two pods of a recording with noise.
const SEED_OF_POD: u32 = 0x9e37_79b1;

/// The files of recorded signals, each of which is read once.
pub(super) struct Recordings<'a> {
    read: Reader<'a>,
    texts: BTreeMap<String, Arc<str>>,
    /// The recordings that are read but not used yet, each with its signal.
    parsed: Vec<Parsed>,
    clock: Clock,
    /// The part of the recordings that is used.
    shown: Shown,
    /// True if the usage of a container may be recorded by pod.
    by_pod_in_containers: bool,
    /// True if values that only rise may be those of a counter, which memory is not.
    may_be_counter: bool,
    notes: Vec<Diagnostic>,
}

/// A recording, or the reason why it can't be read.
struct Parsed {
    recorded: Recorded,
    recording: Result<Recording, Diagnostic>,
}

impl Parsed {
    fn used(&self) -> Option<Used<'_>> {
        let recording = self.recording.as_ref().ok()?;
        Some(Used { recorded: &self.recorded, recording })
    }
}

/// A note on series that are added up, and are then the usage of each pod.
fn note_on_sum(recorded: &Recorded) -> Option<String> {
    let is_of_one_pod = recorded.by.is_some() || recorded.series.contains_key("pod");
    (recorded.sum && !is_of_one_pod).then(|| {
        let path = recorded.source.path();
        let total = recorded.syntax.pick("`load` in place of `perPod`", "`total:…`");
        format!(
            "{path}: each pod has the sum of all series; for a total that the pods share, use \
             {total}"
        )
    })
}

impl<'a> Recordings<'a> {
    pub(super) fn new(read: Reader<'a>, until: Time) -> Recordings<'a> {
        Recordings {
            read,
            texts: BTreeMap::new(),
            parsed: Vec::new(),
            clock: Clock::default(),
            shown: Shown { until, is_moved: false },
            by_pod_in_containers: false,
            may_be_counter: true,
            notes: Vec::new(),
        }
    }

    /// Recordings for the pods of a VPA, each container of which can have usage by pod.
    pub(super) fn for_vpa(read: Reader<'a>, until: Time) -> Recordings<'a> {
        Recordings { by_pod_in_containers: true, ..Recordings::new(read, until) }
    }

    /// The date and time at t=0, if the recordings have dates.
    pub(super) fn clock(&self) -> Option<Timestamp> {
        self.clock.zero()
    }

    /// Notes on the recordings.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        self.notes.clone()
    }

    /// Adds notes on a signal.
    fn note_at(&mut self, at: At<'_>, notes: Vec<String>) {
        self.add(notes.into_iter().map(|what| at.note(what)));
    }

    /// Adds notes on the file as a whole.
    pub(super) fn note(&mut self, notes: Vec<String>) {
        self.add(notes.into_iter().map(Diagnostic::new));
    }

    /// Adds notes, each text once.
    fn add(&mut self, notes: impl Iterator<Item = Diagnostic>) {
        for note in notes {
            if self.notes.iter().all(|known| known.what != note.what) {
                self.notes.push(note);
            }
        }
    }

    /// Fills all signals. The recordings share their t=0.
    pub(super) fn fill(&mut self, metrics: &mut Metrics, at: At<'_>, problems: &mut Problems) {
        for recorded in metrics.recorded_mut() {
            recorded.syntax = self.read.syntax;
            let text = self.text(recorded);
            let recording = text.and_then(|text| Recording::read(recorded, &text));
            self.parsed.push(Parsed { recorded: recorded.clone(), recording });
        }
        self.clock = Clock::new(self.parsed.iter().filter_map(Parsed::used));
        for (index, usage) in metrics.resources.iter_mut().enumerate() {
            let at = at.key("resource").index(index);
            self.may_be_counter = *usage.name != *"memory";
            self.exceptions(&mut usage.exceptions, at.key("pods"), problems);
            self.source(&mut usage.source, &mut usage.exceptions, at, problems);
            refuse_negative(usage, at, problems);
        }
        self.may_be_counter = true;
        for (index, metric) in metrics.pods.iter_mut().enumerate() {
            let at = at.key("pods").index(index);
            self.exceptions(&mut metric.exceptions, at.key("pods"), problems);
            self.source(&mut metric.source, &mut metric.exceptions, at, problems);
        }
        for (index, metric) in metrics.objects.iter_mut().enumerate() {
            let at = at.key("object").index(index);
            self.value_or_series(metric.value.as_mut(), &mut metric.series, at, problems);
        }
        for (index, metric) in metrics.externals.iter_mut().enumerate() {
            let at = at.key("external").index(index);
            self.value_or_series(metric.value.as_mut(), &mut metric.series, at, problems);
        }
    }

    fn source(
        &mut self,
        source: &mut UsageSource,
        exceptions: &mut Vec<Exception>,
        at: At<'_>,
        problems: &mut Problems,
    ) {
        match source {
            UsageSource::PerPod(signal) => {
                let pods = self.signal(signal, true, at.key("perPod"), problems);
                let note = signal.recorded().and_then(note_on_sum);
                self.note_at(at.key("perPod"), Vec::from_iter(note));
                // Exceptions of the user follow, and take precedence.
                exceptions.splice(0..0, pods);
            }
            UsageSource::Load { total, .. } => {
                self.signal(total, false, at.key("load"), problems);
            }
            UsageSource::PerContainer(containers) => {
                let may_be_by_pod = self.by_pod_in_containers;
                for (name, signal) in &mut containers.0 {
                    let at = at.key("containers").key(name);
                    let pods = self.signal(signal, may_be_by_pod, at, problems);
                    let container = Some(name.clone());
                    let container_exception =
                        |exception| Exception { container: container.clone(), ..exception };
                    exceptions.splice(0..0, pods.into_iter().map(container_exception));
                }
            }
        }
    }

    fn exceptions(&mut self, list: &mut [Exception], at: At<'_>, problems: &mut Problems) {
        for (index, exception) in list.iter_mut().enumerate() {
            self.signal(&mut exception.value, false, at.index(index).key("value"), problems);
        }
    }

    fn value_or_series(
        &mut self,
        value: Option<&mut Signal>,
        series: &mut [Series],
        at: At<'_>,
        problems: &mut Problems,
    ) {
        // A single series without labels has become a value.
        if let Some(value) = value {
            let here = at.key("value");
            let here =
                if here.node().is_some() { here } else { at.key("series").index(0).key("value") };
            self.signal(value, false, here, problems);
        }
        for (index, series) in series.iter_mut().enumerate() {
            let at = at.key("series").index(index).key("value");
            self.signal(&mut series.value, false, at, problems);
        }
    }

    /// Fills a signal. Returns the signals of the pods, if it has one of each.
    fn signal(
        &mut self,
        signal: &mut Signal,
        may_be_by_pod: bool,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Vec<Exception> {
        let recorded = match signal {
            Signal::Modified(modified) => {
                return self.modified(modified, may_be_by_pod, at, problems);
            }
            Signal::Sum(parts) => {
                for (index, part) in parts.iter_mut().enumerate() {
                    self.common_signal(part, at.key("add").index(index), problems);
                }
                return Vec::new();
            }
            Signal::Backlog(backlog) => {
                self.common_signal(&mut backlog.arrivals, at.key("backlog"), problems);
                return Vec::new();
            }
            Signal::Recorded(recorded) => recorded,
            _ => return Vec::new(),
        };
        if recorded.by.is_some() && !may_be_by_pod {
            let syntax = recorded.syntax;
            let pods = syntax.pick("`perPod`", "the usage or a metric of pods");
            let hint = format!("to add up the series of the pods, use {}", syntax.sum());
            problems.hint(at.key_position("by"), format!("`by` requires {pods}"), hint);
            return Vec::new();
        }
        let Some(index) = self.parsed.iter().position(|it| it.recorded == *recorded) else {
            return Vec::new();
        };
        let Parsed { recording, .. } = self.parsed.swap_remove(index);
        let found = recording.and_then(|it| it.signals(recorded, &self.clock, self.shown));
        let Signals { common, pods, mut notes, counter } = match found {
            Ok(signals) => signals,
            Err(problem) => {
                let (at, problem) = match problem.kind.clone() {
                    Kind::InvalidField(field) => (at.key(field), problem),
                    Kind::SeveralSeries { hint_without_pods } if !may_be_by_pod => {
                        (at, problem.hint(&*hint_without_pods))
                    }
                    _ => (at, problem),
                };
                problems.add_at(at, problem);
                return Vec::new();
            }
        };
        notes.extend(counter.filter(|_| self.may_be_counter));
        self.note_at(at, notes);
        let exception = |(ordinal, samples): (u32, Arc<[RecordedSample]>)| Exception {
            pods: PodSet::Ordinals(vec![(ordinal, ordinal)]),
            value: Signal::Recorded(Recorded { samples, ..recorded.clone() }),
            recorded: true,
            container: None,
        };
        let exceptions = (0..).zip(pods).map(exception).collect();
        recorded.samples = common;
        exceptions
    }

    /// Fills a part of a signal, which is the same for all pods.
    fn common_signal(&mut self, signal: &mut Signal, at: At<'_>, problems: &mut Problems) {
        if signal.recordings().iter().any(|recorded| recorded.by.is_some()) {
            let what = "a recording with `by` can't be used in a sum, as a factor or in a backlog";
            let hint = format!("to add up the series of the pods, use {}", self.read.syntax.sum());
            problems.hint(at, what, hint);
        } else {
            self.signal(signal, false, at, problems);
        }
    }

    /// Fills a modified signal. The modification applies to the series of each pod; noise gets a
    /// different seed for each pod.
    fn modified(
        &mut self,
        modified: &mut Modified,
        may_be_by_pod: bool,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Vec<Exception> {
        let Modified { by, of } = modified;
        if let Modifier::Factor(factor) = by {
            self.common_signal(factor, at.key("factor"), problems);
        }
        let shown = self.shown;
        match by {
            Modifier::Shift(span) => {
                let until = (shown.until - *span).max(Time::ZERO);
                self.shown = Shown { until, is_moved: true };
                if *span > Span::ZERO {
                    let paths = of.recordings().into_iter().map(|it| it.source.path());
                    let what =
                        |path: &str| format!("{path}: no sample before {span}, because of `shift`");
                    self.note_at(at.key_position("shift"), paths.map(what).collect());
                }
            }
            Modifier::Repeat(span) => {
                self.shown = Shown { until: Time::ZERO + *span, is_moved: true };
            }
            Modifier::Noise(_) | Modifier::Factor(_) => {}
        }
        let pods = self.signal(of, may_be_by_pod, at.key("of"), problems);
        self.shown = shown;
        let with_modification = |(pod, exception): (u32, Exception)| {
            let mut by = by.clone();
            if let Modifier::Noise(noise) = &mut by {
                noise.seed = noise.seed.wrapping_add(pod.wrapping_mul(SEED_OF_POD));
            }
            let value = Signal::Modified(Modified { by, of: Box::new(exception.value) });
            Exception { value, ..exception }
        };
        (1..).zip(pods).map(with_modification).collect()
    }

    fn text(&mut self, recorded: &Recorded) -> Result<Arc<str>, Diagnostic> {
        let path = recorded.source.path();
        if let Some(text) = self.texts.get(path) {
            return Ok(text.clone());
        }
        let text: Arc<str> = read(self.read, path)?.into();
        self.texts.insert(path.to_owned(), text.clone());
        Ok(text)
    }
}

/// Refuses negative recorded usage. Values of custom and external metrics may be negative.
fn refuse_negative(usage: &ResourceUsage, at: At<'_>, problems: &mut Problems) {
    let signals = usage.source.signals().chain(usage.exceptions.iter().map(|it| &it.value));
    for recorded in signals.flat_map(Signal::unscaled_recordings) {
        let negative =
            recorded.samples.iter().filter_map(|sample| Some((sample.at, sample.milli?)));
        if let Some((time, milli)) = negative.into_iter().find(|(_, milli)| *milli < 0) {
            let value = Quantity::from_milli(milli, Format::DecimalSI);
            let path = recorded.source.path();
            let what = format!("{path}: the usage at {time} is negative: {value}");
            problems.hint(at, what, "check the query, or the column of the values");
            return;
        }
    }
}

fn read(reader: Reader<'_>, path: &str) -> Result<String, Diagnostic> {
    reader.read(path).map_err(|why| unreadable(path, why, reader.syntax))
}

/// The time from t=0 to the last sample of each of the recordings of a scenario.
pub fn recorded_lengths<'r>(
    signals: impl IntoIterator<Item = &'r Recorded>,
    reader: Reader<'_>,
) -> Result<Vec<Span>, Diagnostic> {
    let mut all = Vec::new();
    for recorded in signals {
        let text = read(reader, recorded.source.path())?;
        all.push((recorded, Recording::read(recorded, &text)?));
    }
    let used = || all.iter().map(|(recorded, recording)| Used { recorded, recording });
    let clock = Clock::new(used());
    used().map(|used| Ok(used.recording.length(clock.start(used)?))).collect()
}
