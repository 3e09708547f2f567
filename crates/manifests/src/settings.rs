//! Drafts of the same autoscalers with other settings, which may use other metrics and therefore
//! other loads.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::group::{Group, Sources, draft_hpas};
use super::hpa::{ValidHpa, subject_of};
use super::load::{HpaName, Load, Subject};
use super::objects::Object;
use super::recommender::{ValidVpa, draft_vpa, read_vpa};
use super::select::among;
use super::{Draft, DraftError, Drafts};
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::resolve::{Reader, is_removed};
use kube_lockstep_scenario::syntax::Syntax;
use kube_lockstep_scenario::yaml;

/// The components of a VPA, whose flags a scenario sets.
const COMPONENTS: [&str; 2] = ["recommender", "updater"];

impl Draft {
    /// The names of the HPAs. Empty: it is the draft of a VPA.
    #[must_use]
    pub fn hpa_names(&self) -> Vec<HpaName> {
        self.hpas.iter().map(|hpa| hpa.name.clone()).collect()
    }

    /// The names of the containers of the pods.
    #[must_use]
    pub fn container_names(&self) -> Vec<Arc<str>> {
        let containers = self.fields.get("workload").and_then(|it| it["containers"].as_array());
        let names = containers.into_iter().flatten().filter_map(|it| it["name"].as_str());
        names.map(Arc::from).collect()
    }

    /// The name of the VPA, if the scenario has one.
    #[must_use]
    pub fn vpa_name(&self) -> Option<HpaName> {
        self.vpa.as_ref().map(ValidVpa::full_name)
    }

    /// The parts of the scenario that settings can change: the manifests of the HPAs in the field
    /// `hpas`, that of the VPA, and the flags of the components of the VPA.
    #[must_use]
    pub fn manifests(&self) -> Value {
        let hpas = self.hpas.iter().map(|hpa| hpa.hpa.manifest.clone());
        let mut tree = Map::from_iter([("hpas".to_owned(), hpas.collect::<Value>())]);
        if let Some(vpa) = &self.vpa {
            tree.insert("vpa".to_owned(), vpa.vpa.manifest.clone());
            let flags = COMPONENTS
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), self.fields.get(name)?.clone())));
            tree.extend(flags);
        }
        tree.into()
    }

    /// The HPAs. Empty: it is the draft of a VPA.
    #[must_use]
    pub fn hpas(&self) -> &[ValidHpa] {
        &self.hpas
    }

    /// The end of the scenario.
    #[must_use]
    pub fn until(&self) -> Span {
        self.until
    }

    /// Sets the end of the scenario.
    pub fn set_until(&mut self, until: Span) {
        self.until = until;
        self.fields["until"] = json!(until.to_string());
    }
}

/// The API versions of HPAs that a release serves, and a later one does not.
#[must_use]
pub fn removed_versions(hpas: &[ValidHpa], from: Release, to: Release) -> Vec<String> {
    let versions = hpas.iter().map(|hpa| hpa.object.api_version());
    let mut removed: Vec<String> = versions.filter(|it| is_removed(it, from, to)).collect();
    removed.dedup();
    removed
}

impl Drafts {
    /// Drafts a scenario again, with other manifests of its autoscalers in the form of
    /// [`Draft::manifests`].
    ///
    /// # Errors
    /// If a manifest is invalid, or does not fit the options.
    pub fn redraft(
        &self,
        draft: &Draft,
        manifests: &Value,
        read: &dyn Fn(&str) -> Result<String, Diagnostic>,
    ) -> Result<Draft, DraftError> {
        let hpas = manifests["hpas"].as_array().map_or(&[][..], Vec::as_slice);
        let hpas = draft.hpas.iter().zip(hpas).map(|(hpa, manifest)| {
            if hpa.hpa.manifest == *manifest {
                return Ok(hpa.clone());
            }
            ValidHpa::read(&replaced(&hpa.object, manifest))
        });
        let hpas: Vec<ValidHpa> = hpas.collect::<Result<_, _>>()?;
        let vpa = draft.vpa.as_ref().map(|vpa| match manifests.get("vpa") {
            Some(manifest) if vpa.vpa.manifest != *manifest => {
                read_vpa(&replaced(&vpa.object, manifest))
            }
            _ => Ok(vpa.clone()),
        });
        let vpa = vpa.transpose()?;
        let read = Reader { file: read, syntax: Syntax::Flags };
        let sources = Sources { options: &self.options, values: &self.values, read };
        let target = draft.target.object.as_ref();
        let mut again = match &vpa {
            Some(vpa) if hpas.is_empty() => draft_vpa(vpa, target, &[], sources)?,
            _ => draft_hpas(&Group { hpas: &hpas, vpa: vpa.as_ref() }, target, sources)?,
        };
        for name in COMPONENTS {
            let flags = manifests[name]["flags"].as_object().into_iter().flatten();
            for (flag, value) in flags {
                let component = again.fields.entry(name).or_insert_with(|| json!({}));
                component["flags"][flag] = value.clone();
            }
        }
        again.suggest_target(&self.others);
        Ok(again)
    }

    /// Rejects loads that no autoscaler uses, neither of these drafts nor of others with other
    /// settings. `all`: the end of the message if there are others, such as `, in either version`.
    ///
    /// # Errors
    /// The first such load.
    pub fn check_loads(&self, others: &[&Draft], all: &str) -> Result<(), DraftError> {
        let drafts = || self.list.iter().chain(others.iter().copied());
        let used: BTreeSet<usize> = drafts().flat_map(|draft| draft.used_loads.clone()).collect();
        let mut loads = self.values.loads.iter().enumerate();
        let Some((_, load)) = loads.find(|(index, _)| !used.contains(index)) else {
            return Ok(());
        };
        let is_own = |(index, it): &(usize, &Load)| {
            used.contains(index)
                && it.subject.name == load.subject.name
                && it.subject.is_resource()
                && it.subject.container.is_some()
        };
        let own = self.values.loads.iter().enumerate().find(is_own);
        if let Some((_, own)) = own.filter(|_| load.subject.container.is_none()) {
            return Err(without_use(&load.subject, &own.subject));
        }
        let hpas: Vec<&ValidHpa> = drafts().flat_map(|draft| &draft.hpas).collect();
        let has_vpa = drafts().any(|draft| draft.vpa.is_some());
        let error = unused(&load.subject, &hpas, has_vpa, all);
        Err(match (self.vpas_left_out.first(), error) {
            (Some(vpa), DraftError::Options(problem)) if load.subject.is_resource() => {
                DraftError::Options(problem.hint(format!(
                    "leave out the load, or add --vpa {vpa}, to predict this VPA as well"
                )))
            }
            (_, error) => error,
        })
    }
}

/// The error of a load that names no container and has no use, because a container has its own.
fn without_use(load: &Subject, own: &Subject) -> DraftError {
    let what = format!("--load {load} has no use: --load {own} sets the usage of that container");
    let hint = Subject { container: Some("CONTAINER".to_owned()), ..load.clone() };
    let hint =
        format!("name another container, as in --load {hint}=…, or leave out one of the two");
    DraftError::Options(Diagnostic::new(what).hint(hint))
}

/// An HPA with another manifest, at the same place.
fn replaced(object: &Object, manifest: &Value) -> Object {
    // JSON is YAML.
    let node = yaml::manifests(&manifest.to_string()).ok().and_then(|mut nodes| nodes.pop());
    let mut replaced = object.clone();
    if let Some(mut node) = node {
        (node.line, node.column) = (object.node.line, object.node.column);
        replaced.node = node;
    }
    replaced
}

/// The error of a load that none of these HPAs uses. Each of them can have several settings.
pub(super) fn unused(load: &Subject, hpas: &[&ValidHpa], has_vpa: bool, all: &str) -> DraftError {
    let Subject { hpa: only, name, labels, .. } = load;
    let is_of = |hpa: &&&ValidHpa| only.as_ref().is_none_or(|only| hpa.name.is(only));
    let hpas: Vec<&&ValidHpa> = hpas.iter().filter(is_of).collect();
    let metrics = || hpas.iter().flat_map(|hpa| &hpa.hpa.metrics);
    let same_name = |metric: &&MetricSpec| metric.name() == Some(name);
    let subjects = |metrics: Vec<&MetricSpec>| -> BTreeSet<String> {
        metrics.into_iter().filter_map(subject_of).map(|it| it.to_string()).collect()
    };
    if metrics().any(|metric| same_name(&metric)) && labels.is_empty() && !load.is_resource() {
        let what =
            format!("--load {load} has no use: each series of {name} has a load with its labels");
        return DraftError::Options(Diagnostic::new(what).hint("leave it out"));
    }
    if metrics().any(|metric| same_name(&metric)) {
        let same_name = subjects(metrics().filter(same_name).collect());
        let same_name: Vec<&str> = same_name.iter().map(String::as_str).collect();
        let labels = Subject { labels: labels.clone(), ..Subject::default() };
        let what = format!("no HPA scales on {name} with the labels {labels}");
        let hint = format!("the HPA has the metric {}", same_name.join(", "));
        return DraftError::Options(Diagnostic::new(what).hint(hint));
    }
    if hpas.is_empty() && has_vpa {
        let what = format!("a VPA does not use {name}, which has a load");
        let hint = among(name, "it uses", ["cpu", "memory"]);
        return DraftError::Options(Diagnostic::new(what).with_hint(hint));
    }
    if has_vpa && load.is_resource() {
        let what = format!("neither an HPA nor a VPA uses {name}, which has a load");
        let hint = format!(
            "leave out the load, or add {name} to `controlledResources` in the policies of the VPA"
        );
        return DraftError::Options(Diagnostic::new(what).hint(hint));
    }
    let names: BTreeSet<String> = hpas.iter().map(|hpa| hpa.name.to_string()).collect();
    let what = match (Vec::from_iter(names).as_slice(), has_vpa) {
        ([only], true) => format!("neither HPA {only} nor a VPA uses {name}, which has a load"),
        (_, true) => format!("neither an HPA nor a VPA uses {name}, which has a load"),
        ([only], false) => format!("HPA {only} does not scale on {name}, which has a load"),
        (_, false) => format!("no HPA scales on {name}, which has a load"),
    };
    let what = format!("{what}{all}");
    let mut names = subjects(metrics().collect());
    names.extend(has_vpa.then(|| ["cpu", "memory"].map(str::to_owned)).into_iter().flatten());
    let verb = if has_vpa { "they use" } else { "it scales on" };
    let hint = among(name, verb, names.iter().map(String::as_str));
    DraftError::Options(Diagnostic::new(what).with_hint(hint))
}
