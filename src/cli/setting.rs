//! Settings of autoscalers that `compare` predicts: some of their fields, or another manifest.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use super::failure::Failure;
use super::manifests;
use kube_lockstep_manifests::field::{FieldPath, find_hpa, split_at_commas};
use kube_lockstep_manifests::{AutoscalerKind, HpaManifest, HpaName, ManifestFile};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;

/// The names of autoscalers.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) hpas: Vec<HpaName>,
    pub(super) vpas: Vec<HpaName>,
}

impl Names {
    /// The names of the autoscalers of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Names {
        let namespace = scenario.namespace.to_string();
        let name =
            |name: &str| HpaName { namespace: Some(namespace.clone()), name: name.to_owned() };
        Names {
            hpas: scenario.hpas.iter().map(|hpa| name(&hpa.name)).collect(),
            vpas: scenario.vpa_name().into_iter().map(|vpa| name(vpa)).collect(),
        }
    }

    /// The kind of the autoscaler that has a field.
    pub(super) fn kind_of(&self, path: &FieldPath) -> AutoscalerKind {
        path.kind_among(&self.hpa_names(), self.vpa_for(path))
    }

    /// Returns true if a field is one of the autoscaler with this kind and name.
    fn has(&self, path: &FieldPath, kind: AutoscalerKind, name: &HpaName) -> bool {
        path.is_of(kind, &name.name, &self.hpa_names(), self.vpa_for(path))
    }

    /// Returns true if a field is one of these autoscalers. `known` has all predicted ones.
    pub(super) fn have(&self, path: &FieldPath, known: &Names) -> bool {
        self.all().any(|(kind, name)| known.has(path, kind, name))
    }

    fn hpa_names(&self) -> Vec<&str> {
        self.hpas.iter().map(|hpa| &*hpa.name).collect()
    }

    /// The VPA that a path names, or the first one.
    fn vpa_for(&self, path: &FieldPath) -> Option<&str> {
        let is_named = |vpa: &&HpaName| path.name.as_ref().is_none_or(|it| *it == vpa.name);
        self.vpas.iter().find(is_named).or(self.vpas.first()).map(|vpa| &*vpa.name)
    }

    /// The names for a hint: `the HPAs are web, api`.
    pub(super) fn listed(&self) -> String {
        let names =
            |of: &[HpaName]| of.iter().map(|it| it.name.clone()).collect::<Vec<_>>().join(", ");
        match (&*names(&self.hpas), &*names(&self.vpas)) {
            ("", "") => "there are no autoscalers".to_owned(),
            (hpas, "") => format!("the HPAs are {hpas}"),
            ("", vpas) => format!("the VPAs are {vpas}"),
            (hpas, vpas) => format!("the HPAs are {hpas}, and the VPAs {vpas}"),
        }
    }

    /// All of them, with their kinds.
    pub(super) fn all(&self) -> impl Iterator<Item = (AutoscalerKind, &HpaName)> {
        let hpas = self.hpas.iter().map(|name| (AutoscalerKind::Hpa, name));
        hpas.chain(self.vpas.iter().map(|name| (AutoscalerKind::Vpa, name)))
    }

    /// The names of several scenarios.
    pub(super) fn concat(several: &[Names]) -> Names {
        Names {
            hpas: several.iter().flat_map(|it| it.hpas.clone()).collect(),
            vpas: several.iter().flat_map(|it| it.vpas.clone()).collect(),
        }
    }
}

/// A setting.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    /// The fields or the file, as they were given.
    pub(super) about: String,
    change: SettingChange,
    /// The file of a manifest also has VPAs, which are ignored.
    ignores_vpas: bool,
}

/// The change that a setting makes.
#[derive(Clone, Debug)]
enum SettingChange {
    /// Some fields.
    Fields(Vec<Field>),
    /// The whole manifest: one of the HPAs of a file, which is never empty.
    Manifest(Vec<HpaManifest>),
}

/// A new value of a field.
#[derive(Clone, PartialEq, Debug)]
struct Field {
    path: FieldPath,
    value: Value,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (name, fields) = named(text).unwrap_or((text, text));
        let changes =
            split_at_commas(fields).into_iter().map(Field::parse).collect::<Result<_, _>>()?;
        Ok(Setting {
            name: name.trim().to_owned(),
            about: fields.to_owned(),
            change: SettingChange::Fields(changes),
            ignores_vpas: false,
        })
    }
}

/// The name and the fields of a setting with a name: they are separated by the first colon that
/// precedes a path. If the paths are wrong, by the first colon, so that their error says so.
fn named(text: &str) -> Option<(&str, &str)> {
    if FieldPath::is_path(text) {
        return None;
    }
    let mut parts = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let before_path = parts.find(|(_, fields)| FieldPath::is_path(fields));
    before_path.or_else(|| text.split_once(':').filter(|(name, _)| !name.contains(['=', '.'])))
}

impl Field {
    fn parse(part: &str) -> Result<Field, String> {
        let part = part.trim();
        let (path, value) = part.split_once('=').ok_or_else(|| {
            format!("{part}: expected PATH=VALUE, for example spec.maxReplicas=20")
        })?;
        let path = FieldPath::parse(path).map_err(|why| format!("{part}: {why}"))?;
        let value = serde_yaml::from_str(value)
            .map_err(|error| format!("{part}: the value is not valid YAML: {error}"))?;
        Ok(Field { path, value })
    }
}

impl Setting {
    /// Reads the argument of `--manifest`.
    pub(super) fn parse_manifest(text: &str) -> Result<Setting, String> {
        let named = text.split_once(':').filter(|_| !Path::new(text).exists());
        let (name, path) = named.map_or((text, text), |(name, path)| (name, path.trim_start()));
        let manifest =
            manifests::read_load(path).map_err(|error| format!("{path}: {}", error.what))?;
        let ignores_vpas = manifest.contains("VerticalPodAutoscaler");
        let file = ManifestFile { name: path.to_owned(), text: manifest, lenient: false };
        let hpas = HpaManifest::find(&file).map_err(|error| error.to_string())?;
        if hpas.is_empty() {
            return Err(format!(
                "{path}: there is no HorizontalPodAutoscaler in this file; for settings of a VPA, \
                 use --set"
            ));
        }
        let (name, about) = (name.trim().to_owned(), path.to_owned());
        Ok(Setting { name, about, change: SettingChange::Manifest(hpas), ignores_vpas })
    }

    /// The flag of the setting.
    pub(super) fn flag(&self) -> &'static str {
        match self.change {
            SettingChange::Fields(_) => "--set",
            SettingChange::Manifest(_) => "--manifest",
        }
    }

    /// Returns the autoscalers of a scenario that the setting changes. `known` has all predicted
    /// ones.
    pub(super) fn changed<'h>(
        &self,
        own: &'h Names,
        known: &Names,
    ) -> Vec<(AutoscalerKind, &'h HpaName)> {
        let is_changed = |(kind, name): &(AutoscalerKind, &HpaName)| match &self.change {
            SettingChange::Fields(fields) => {
                fields.iter().any(|field| known.has(&field.path, *kind, name))
            }
            SettingChange::Manifest(_) => {
                *kind == AutoscalerKind::Hpa && !self.manifests_of(name, &known.hpas).is_empty()
            }
        };
        own.all().filter(is_changed).collect()
    }

    /// Returns true if the scenario of these autoscalers contains those that the setting names, if
    /// it names any.
    pub(super) fn is_for(&self, own: &Names, known: &Names) -> bool {
        match &self.change {
            SettingChange::Fields(fields) => fields.iter().all(|it| own.have(&it.path, known)),
            SettingChange::Manifest(_) => !self.changed(own, known).is_empty(),
        }
    }

    /// The kind of the autoscaler of the first field that none of these has.
    pub(super) fn missing_kind(&self, known: &Names) -> AutoscalerKind {
        let SettingChange::Fields(fields) = &self.change else { return AutoscalerKind::Hpa };
        let missing = fields.iter().find(|field| !known.have(&field.path, known));
        missing.or(fields.first()).map_or(AutoscalerKind::Hpa, |it| known.kind_of(&it.path))
    }

    /// The names of the HPAs in the file of a manifest.
    pub(super) fn manifest_names(&self) -> Vec<String> {
        self.manifests().iter().map(HpaManifest::full_name).collect()
    }

    fn manifests(&self) -> &[HpaManifest] {
        match &self.change {
            SettingChange::Fields(_) => &[],
            SettingChange::Manifest(hpas) => hpas,
        }
    }

    /// The manifests that replace an HPA: those with its name and namespace. A manifest can leave
    /// the namespace open, and if only one predicted HPA has the name, the namespace has no effect.
    fn manifests_of(&self, hpa: &HpaName, known: &[HpaName]) -> Vec<&HpaManifest> {
        let named = self.manifests().iter().filter(|manifest| manifest.name() == hpa.name);
        let named: Vec<&HpaManifest> = named.collect();
        let is_same = |manifest: &&HpaManifest| manifest.namespace() == hpa.namespace;
        let can_be_same = |manifest: &&HpaManifest| {
            manifest.namespace().is_none() || hpa.namespace.is_none() || is_same(manifest)
        };
        let matching = |matches: &dyn Fn(&&HpaManifest) -> bool| -> Vec<&HpaManifest> {
            named.iter().copied().filter(|manifest| matches(manifest)).collect()
        };
        let found = [matching(&is_same), matching(&can_be_same)];
        let is_only = known.iter().filter(|other| other.name == hpa.name).count() == 1;
        match found.into_iter().find(|found| !found.is_empty()) {
            Some(found) => found,
            None if is_only => named,
            None => Vec::new(),
        }
    }

    /// Checks that each of the predicted HPAs has at most one manifest. Returns notes on manifests
    /// and HPAs without a counterpart.
    pub(super) fn check_manifests(&self, known: &[HpaName]) -> Result<Vec<String>, Failure> {
        let (mut notes, mut used) = (Vec::new(), Vec::new());
        if self.manifests().is_empty() {
            return Ok(notes);
        }
        let at = format!("--manifest {}", self.about);
        if self.ignores_vpas {
            notes.push(format!(
                "{at}: the VPAs in this file are ignored; to change fields of a VPA, use --set"
            ));
        }
        for hpa in known {
            let found = self.manifests_of(hpa, known);
            let names: Vec<String> = found.iter().map(|it| it.full_name()).collect();
            if found.len() > 1 {
                let what = format!(
                    "{at}: expected one manifest of HPA {hpa}, found {}: {}",
                    found.len(),
                    names.join(", ")
                );
                return Err(Failure::usage(what).hint("leave out the others"));
            }
            if found.is_empty() {
                notes.push(format!("{at}: it has no HPA {hpa}, which keeps its manifest"));
            }
            used.extend(names);
        }
        let unused = self.manifest_names().into_iter().filter(|name| !used.contains(name));
        notes.extend(unused.map(|name| {
            format!("{at}: HPA {name} is ignored, because no predicted HPA has this name")
        }));
        Ok(notes)
    }

    /// Changes the autoscalers of a scenario, whose pods have these containers.
    pub(super) fn apply(
        &self,
        tree: &mut Value,
        own: &Names,
        known: &Names,
        containers: &[Arc<str>],
    ) -> Result<(), Failure> {
        if let SettingChange::Fields(fields) = &self.change {
            return apply_all(fields, tree, containers).map_err(Failure::usage);
        }
        for hpa in &own.hpas {
            if let [manifest] = *self.manifests_of(hpa, &known.hpas) {
                let before = find_hpa(tree, Some(&hpa.name)).map_err(Failure::usage)?;
                replace(before, manifest)?;
            }
        }
        Ok(())
    }
}

/// Sets fields of autoscalers.
fn apply_all(fields: &[Field], tree: &mut Value, containers: &[Arc<str>]) -> Result<(), String> {
    let mut metrics = Vec::new();
    for field in fields {
        let hpa = field.path.find(tree)?;
        metrics.push(hpa["spec"]["metrics"].as_array().map_or(0, Vec::len));
        field.path.add_policies(hpa, containers);
        field.path.set(hpa, field.value.clone())?;
    }
    // Several fields can add a metric together.
    for (field, metrics) in fields.iter().zip(metrics) {
        field.path.check_metric(field.path.find(tree)?, metrics)?;
    }
    Ok(())
}

/// Replaces an HPA. The other manifest may have another namespace, or none: all settings are
/// predicted in the same one.
fn replace(before: &mut Value, hpa: &HpaManifest) -> Result<(), Failure> {
    let mut manifest = hpa.manifest().map_err(|error| {
        let problem = error.problems.first();
        let hint = problem.and_then(|problem| problem.hint.clone());
        match (error.problems.len(), hint) {
            (1, Some(hint)) => Failure::usage(located(&error)).hint(hint),
            _ => Failure::usage(error.to_string()),
        }
    })?;
    let target = |hpa: &Value| {
        let target = &hpa["spec"]["scaleTargetRef"];
        format!("{} {}", text(&target["kind"]), text(&target["name"]))
    };
    if target(before) != target(&manifest) {
        let what = format!(
            "it scales {}, not {}: all settings have the same target, as they share its load",
            target(&manifest),
            target(before)
        );
        return Err(Failure::usage(what));
    }
    let namespace = before["metadata"].get("namespace").cloned();
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.remove("namespace");
        metadata.extend(namespace.map(|namespace| ("namespace".to_owned(), namespace)));
    }
    *before = manifest;
    Ok(())
}

/// The first problem of a file, with its place.
fn located(error: &scenario::Error) -> String {
    let problem = &error.problems[0];
    problem.located(&error.path)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_any_character() {
        for (text, name, about) in [
            ("v1.2:spec.maxReplicas=9", "v1.2", "spec.maxReplicas=9"),
            ("a=b: spec.maxReplicas=9", "a=b", " spec.maxReplicas=9"),
            ("60 %, 2m:spec.maxReplicas=9", "60 %, 2m", "spec.maxReplicas=9"),
            ("at 12:30:web/spec.maxReplicas=9", "at 12:30", "web/spec.maxReplicas=9"),
            ("spec.a=[{type: Pods}]", "spec.a=[{type: Pods}]", "spec.a=[{type: Pods}]"),
            ("web/spec.a={b: spec.c}", "web/spec.a={b: spec.c}", "web/spec.a={b: spec.c}"),
        ] {
            let setting: Setting = text.parse().expect(text);
            assert_eq!((&*setting.name, &*setting.about), (name, about));
        }
        let error = "fast:maxReplicas=9".parse::<Setting>().expect_err("no path");
        assert!(error.contains("maxReplicas=9: the path must begin with `spec.`"), "{error}");
        assert!(!error.contains("fast"), "{error}");
    }
}
