//! Selects autoscalers from manifests, and finds the autoscalers that loads and requests name.

use std::collections::BTreeSet;

use super::hpa::ValidHpa;
use super::load::{HpaName, Load, RequestOption, Subject};
use super::objects::{ManifestFile, Object, Objects};
use super::recommender::ValidVpa;
use super::target::read_target;
use super::{AutoscalerKind, DraftError, DraftOptions, Selected};
use kube_autoscaler_models::api::MetricSpec;
use kube_lockstep_scenario::diagnostic::{Diagnostic, Hint};
use kube_lockstep_scenario::error::{DistinctProblems, Error, similar};
use kube_lockstep_scenario::recording;

/// The kinds of the autoscalers.
const KINDS: [&str; 2] = ["HorizontalPodAutoscaler", "VerticalPodAutoscaler"];

/// Rejects manifests without an autoscaler of a supported kind.
pub(super) fn check_kinds(
    objects: &Objects,
    files: &[ManifestFile],
    options: &DraftOptions,
) -> Result<(), DraftError> {
    let supports_vpas = options.vpas != Selected::Unsupported;
    if !objects.hpas.is_empty() || (supports_vpas && !objects.vpas.is_empty()) {
        return Ok(());
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    let kinds = match supports_vpas {
        true => "HorizontalPodAutoscaler and no VerticalPodAutoscaler",
        false => "HorizontalPodAutoscaler",
    };
    if let Some(what) = empty(objects, files) {
        return Err(DraftError::Options(Diagnostic::new(what).hint(PRINTS_MANIFESTS)));
    }
    let what = format!("there is no {kinds} in {}", names.join(", "));
    let hint = match (supports_vpas, objects.vpas.first()) {
        (false, Some(_)) => Some(
            "VPAs are not supported here; `kube-lockstep predict`, `compare`, `tune` and `gate` \
             support them",
        ),
        _ => None,
    };
    let hint = hint.map(Hint::from).or_else(|| kinds_hint(objects).map(Hint::from));
    Err(DraftError::Options(Diagnostic::new(what).with_hint(hint)))
}

/// The message that the files contain only comments. None if they contain more.
fn empty(objects: &Objects, files: &[ManifestFile]) -> Option<String> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with(['#', '-']);
    let has_content = |file: &ManifestFile| file.text.lines().any(is_content);
    if !objects.others.is_empty() || !objects.vpas.is_empty() || files.iter().any(has_content) {
        return None;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    Some(format!("{} {} empty", names.join(", "), if names.len() == 1 { "is" } else { "are" }))
}

/// The source of manifests, in hints.
const PRINTS_MANIFESTS: &str = "`kubectl get hpa,deployment -o yaml` prints some";

/// The kinds of the manifests if none is an HPA; one of them may be misspelled.
fn kinds_hint(objects: &Objects) -> Option<String> {
    let kinds: BTreeSet<String> = objects.others.iter().map(Object::kind).collect();
    if kinds.contains("Kustomization") {
        let build = "`kubectl kustomize DIR | kube-lockstep predict -f -`";
        return Some(format!("a Kustomization only names manifests: {build} reads its output"));
    }
    let misspelled = |object: &Object| {
        let (place, kind) = (object.place(), object.kind());
        let hint = similar(&kind, KINDS)?;
        Some(format!("{place}: the kind {kind} is unknown: {hint}"))
    };
    match objects.others.iter().find_map(misspelled) {
        Some(misspelled) => Some(misspelled),
        None if kinds.is_empty() => {
            Some(format!("there are no objects of the Kubernetes API; {PRINTS_MANIFESTS}"))
        }
        None => Some(format!("only these kinds were found: {}", Vec::from_iter(kinds).join(", "))),
    }
}

/// The selected autoscalers of a kind.
pub(super) fn select<'o>(
    objects: &'o [Object],
    selected: &Selected,
    kind: AutoscalerKind,
) -> Result<Vec<&'o Object>, DraftError> {
    let patterns = match selected {
        Selected::All => return Ok(objects.iter().collect()),
        Selected::None | Selected::Unsupported => return Ok(Vec::new()),
        Selected::Named(patterns) => patterns,
    };
    let is_unknown = |pattern: &&String| !objects.iter().any(|object| is_named(pattern, object));
    if let Some(pattern) = patterns.iter().find(is_unknown) {
        let names: Vec<String> = objects.iter().map(Object::full_name).collect();
        let intro = format!("the {kind}s are");
        let hint = among(pattern, &intro, names.iter().map(String::as_str));
        let problem = Diagnostic::new(format!("there is no {kind} {pattern}")).with_hint(hint);
        return Err(DraftError::Options(problem));
    }
    let is_selected = |object: &&Object| patterns.iter().any(|pattern| is_named(pattern, object));
    Ok(objects.iter().filter(is_selected).collect())
}

/// Returns true if a pattern of `--hpa` or `--vpa` is for this object.
pub(super) fn is_named(pattern: &str, object: &Object) -> bool {
    recording::matches(pattern, &object.name()) || recording::matches(pattern, &object.full_name())
}

/// Rejects autoscalers of one name, of which only one can exist in a cluster.
pub(super) fn check_names(objects: &[&Object], kind: AutoscalerKind) -> Result<(), DraftError> {
    for (index, object) in objects.iter().enumerate() {
        let is_same = |other: &&&Object| other.full_name() == object.full_name();
        let Some(first) = objects[..index].iter().find(is_same) else { continue };
        // A manifest without a name is invalid, which is another error.
        if object.name().is_empty() {
            continue;
        }
        let what = format!("{kind} {} is also in {}", object.full_name(), first.place());
        let problem = Diagnostic::new(what).at_node(&object.node).hint(ONE_OF_A_NAME);
        return Err(object.problems(vec![problem]).into());
    }
    Ok(())
}

/// The hint for manifests of the same object.
pub(super) const ONE_OF_A_NAME: &str = "a cluster has only one of them: leave out the other one, \
                                        for example a base whose overlay is read as well";

/// The loads and requests of the options. Their subjects are resolved: in `a:b`, `a` is known to
/// be an autoscaler, or `a:b` to be a metric.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) loads: Vec<Load>,
    pub(super) requests: Vec<RequestOption>,
    /// Containers of other manifests, which they may name as well.
    pub(super) other_containers: Vec<String>,
}

/// The names in other manifests that loads and requests may have as well.
#[derive(Default)]
pub(super) struct OtherNames {
    pub(super) autoscalers: Vec<HpaName>,
    pub(super) containers: Vec<String>,
}

impl OtherNames {
    pub(super) fn of(objects: &Objects) -> OtherNames {
        let autoscalers = objects.hpas.iter().chain(&objects.vpas);
        let name = |it: &Object| HpaName { namespace: it.namespace(), name: it.name() };
        // A VPA can have any target.
        let pods = objects.others.iter().filter_map(|it| read_target(it, AutoscalerKind::Vpa).ok());
        let containers = pods.flat_map(|pods| pods.container_names().collect::<Vec<_>>());
        OtherNames {
            autoscalers: autoscalers.map(name).collect(),
            containers: containers.collect(),
        }
    }
}

impl Values {
    /// The names of loads and requests.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &Subject> {
        let loads = self.loads.iter().map(|load| &load.subject);
        loads.chain(self.requests.iter().map(|request| &request.subject))
    }
}

/// Finds the autoscalers of loads and requests (`web:cpu`). Colons in names of metrics are kept.
pub(super) fn find_autoscalers(
    hpas: &[ValidHpa],
    vpas: &[ValidVpa],
    others: &OtherNames,
    objects: &Objects,
    options: &DraftOptions,
) -> Result<Values, DraftError> {
    let (loads, requests) = (options.loads.clone(), options.requests.clone());
    let mut values = Values { loads, requests, other_containers: others.containers.clone() };
    let own = hpas.iter().map(|it| it.name.clone()).chain(vpas.iter().map(ValidVpa::full_name));
    let known: Vec<HpaName> = own.chain(others.autoscalers.iter().cloned()).collect();
    let metrics: BTreeSet<&str> =
        hpas.iter().flat_map(|hpa| &hpa.hpa.metrics).filter_map(MetricSpec::name).collect();
    let loads = values.loads.iter_mut().map(|load| ("--load", &mut load.subject));
    let requests = values.requests.iter_mut();
    let requests = requests.map(|request| ("--request", &mut request.subject));
    for (flag, subject) in loads.chain(requests) {
        let Some(hpa) = &subject.hpa else { continue };
        let whole = format!("{hpa}:{}", subject.name);
        let is_known = known.iter().any(|it| it.is(hpa));
        let not_selected = || objects.kind_of_autoscaler(hpa).filter(|_| !is_known);
        if metrics.contains(&*whole) {
            *subject = Subject { hpa: None, name: whole, ..subject.clone() };
        } else if let Some(kind) = not_selected() {
            let what = format!("{flag} {subject}: {kind} {hpa} is not selected");
            let select = format!("--{}", kind.to_string().to_lowercase());
            let hint = format!("leave out this {flag}, or add `{select} {hpa}`");
            return Err(DraftError::Options(Diagnostic::new(what).hint(hint)));
        } else if !is_known && !subject.is_resource() {
            *subject = Subject { hpa: None, name: whole, ..subject.clone() };
        } else if !is_known {
            let mut names: Vec<String> = known.iter().map(HpaName::to_string).collect();
            // Another version can have the same autoscalers.
            let mut listed = BTreeSet::new();
            names.retain(|name| listed.insert(name.clone()));
            let hint = among(hpa, "the autoscalers are", names.iter().map(String::as_str));
            let kind = if vpas.is_empty() { "HPA" } else { "HPA or VPA" };
            let what = format!("{flag} {subject}: there is no {kind} {hpa}");
            return Err(DraftError::Options(Diagnostic::new(what).with_hint(hint)));
        }
    }
    for (index, load) in values.loads.iter().enumerate() {
        if values.loads[..index].iter().any(|other| other.subject == load.subject) {
            let what = format!("--load {} is given twice", load.subject);
            let hint = "each metric has one load: add the values up";
            return Err(DraftError::Options(Diagnostic::new(what).hint(hint)));
        }
    }
    Ok(values)
}

/// `did you mean …?`, or all names.
pub(super) fn among<'n>(
    typed: &str,
    intro: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<Hint> {
    let names: Vec<&str> = names.into_iter().collect();
    let all = || (!names.is_empty()).then(|| format!("{intro} {}", names.join(", ")).into());
    similar(typed, names.iter().copied()).or_else(all)
}

/// The problems of all invalid manifests, in the order in which they are found.
#[derive(Default)]
pub(super) struct Invalid {
    problems: DistinctProblems,
}

impl Invalid {
    /// Adds the problems of a manifest, each with its file.
    pub(super) fn add(&mut self, error: Error) {
        for problem in error.problems {
            // An HPA and a VPA can have the same target.
            self.problems.add(match problem.file() {
                Some(_) => problem,
                None => problem.in_file(&error.path),
            });
        }
    }

    /// The valid autoscalers of a kind. The target of an invalid one is checked too, so that all
    /// errors are reported at once.
    pub(super) fn valid<T>(
        &mut self,
        autoscalers: Vec<&Object>,
        kind: AutoscalerKind,
        read: impl Fn(&Object) -> Result<T, Error>,
        others: &[Object],
    ) -> Vec<T> {
        let mut valid = Vec::new();
        for autoscaler in autoscalers {
            match read(autoscaler) {
                Ok(it) => valid.push(it),
                Err(error) => {
                    self.add(error);
                    let is_target = |object: &&Object| autoscaler.refers_to(kind, object);
                    let targets = others.iter().filter(is_target);
                    let errors = targets.filter_map(|target| read_target(target, kind).err());
                    errors.for_each(|error| self.add(error));
                }
            }
        }
        valid
    }

    /// Returns a result, or collects the problems of an invalid manifest.
    ///
    /// # Errors
    /// If the manifests do not fit the options.
    pub(super) fn note<T>(
        &mut self,
        result: Result<T, DraftError>,
    ) -> Result<Option<T>, DraftError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(DraftError::Invalid(error)) => {
                self.add(error);
                Ok(None)
            }
            Err(error @ DraftError::Options(_)) => Err(error),
        }
    }

    /// The problems, for callers that leave out invalid manifests.
    pub(super) fn into_problems(self) -> Vec<Diagnostic> {
        self.problems.into_list()
    }

    /// Fails if a manifest is invalid.
    pub(super) fn check(self) -> Result<(), Error> {
        let problems = self.problems.into_list();
        match problems.first().and_then(Diagnostic::file).map(str::to_owned) {
            Some(path) => Err(Error { path, problems }),
            None => Ok(()),
        }
    }
}
