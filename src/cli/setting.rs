//! Settings of an HPA that `compare` predicts: some of its fields, or another manifest.

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use super::failure::Failure;
use super::manifests;
use kube_lockstep_manifests::{HpaManifest, HpaName, ManifestFile};
use kube_lockstep_report::counted;
use kube_lockstep_scenario as scenario;

/// A setting.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    /// The fields or the file, as they were given.
    pub(super) about: String,
    change: SettingChange,
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
    /// The name of the HPA, if it is one of several.
    hpa: Option<String>,
    path: Vec<String>,
    value: Value,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (name, fields) = named(text).unwrap_or((text, text));
        let changes = split(fields).into_iter().map(Field::parse).collect::<Result<_, _>>()?;
        Ok(Setting {
            name: name.trim().to_owned(),
            about: fields.to_owned(),
            change: SettingChange::Fields(changes),
        })
    }
}

/// The name and the fields of a setting with a name: they are separated by the first colon that
/// precedes a path. If the paths are wrong, by the first colon, so that their error says so.
fn named(text: &str) -> Option<(&str, &str)> {
    let is_path = |text: &str| {
        let text = text.trim_start();
        let after_hpa = text.split_once('/').filter(|(hpa, _)| !hpa.contains([':', '=', ',']));
        text.starts_with(SPEC) || after_hpa.is_some_and(|(_, path)| path.starts_with(SPEC))
    };
    if is_path(text) {
        return None;
    }
    let mut parts = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let before_path = parts.find(|(_, fields)| is_path(fields));
    before_path.or_else(|| text.split_once(':').filter(|(name, _)| !name.contains(['=', '.'])))
}

/// The beginning of a path.
const SPEC: &str = "spec.";

/// Splits at commas outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

impl Field {
    fn parse(part: &str) -> Result<Field, String> {
        let part = part.trim();
        let (path, value) = part.split_once('=').ok_or_else(|| {
            format!("{part}: expected PATH=VALUE, for example spec.maxReplicas=20")
        })?;
        let (hpa, path) = match path.split_once('/') {
            Some((hpa, path)) if path.starts_with(SPEC) => (Some(hpa.to_owned()), path),
            _ => (None, path),
        };
        // `metrics[0]` is the same as `metrics.0`.
        let path = path.trim().replace('[', ".").replace(']', "");
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.first().is_none_or(|first| first != "spec") || path.iter().any(String::is_empty) {
            return Err(format!("{part}: the path must begin with `spec.`"));
        }
        if path.get(1).is_some_and(|field| field == "template") {
            return Err(format!(
                "{part}: a setting changes the HPA, not its target; for another request in all \
                 settings, use --request, for example --request cpu=300m"
            ));
        }
        if path.get(1).is_some_and(|field| field == "scaleTargetRef") {
            return Err(format!(
                "{part}: all settings have the same target, as they share its load"
            ));
        }
        let value = serde_yaml::from_str(value)
            .map_err(|error| format!("{part}: the value is not valid YAML: {error}"))?;
        Ok(Field { hpa, path, value })
    }

    /// Sets the field of an HPA.
    fn apply(&self, hpa: &mut Value) -> Result<(), String> {
        let mut at = hpa;
        for part in &self.path {
            let index = part.parse::<usize>().ok();
            if at.is_null() {
                let empty = serde_json::Map::new();
                *at = if index.is_some() { Value::Array(Vec::new()) } else { empty.into() };
            }
            at = match (at, index) {
                (Value::Array(items), Some(index)) => {
                    if index > items.len() {
                        let (path, count) = (self.path.join("."), counted(items.len(), "element"));
                        return Err(format!(
                            "{path}: there is no element {index}: the list has {count}, and \
                             indices count from 0"
                        ));
                    }
                    if index == items.len() {
                        items.push(Value::Null);
                    }
                    &mut items[index]
                }
                (Value::Object(fields), _) => fields.entry(part.clone()).or_insert(Value::Null),
                (Value::Array(_), None) => {
                    return Err(format!(
                        "{}: name the element by its index in place of `{part}`, for example 0",
                        self.path.join(".")
                    ));
                }
                _ => return Err(format!("{}: `{part}` can't be set there", self.path.join("."))),
            };
        }
        *at = self.value.clone();
        Ok(())
    }

    /// Fails if the field belongs to a metric that did not exist before, and that is not complete.
    fn check_metric(&self, hpa: &Value, before: usize) -> Result<(), String> {
        let Some(index) = self.path.get(2).filter(|_| self.path[1] == "metrics") else {
            return Ok(());
        };
        let is_new = index.parse::<usize>().is_ok_and(|index| index >= before);
        let metric = &hpa["spec"]["metrics"][index.parse::<usize>().unwrap_or_default()];
        if !is_new || metric.get("type").is_some() {
            return Ok(());
        }
        let (path, count) = (self.path.join("."), counted(before, "metric"));
        Err(format!(
            "{path}: there is no metric {index}: the HPA has {count}, and indices count from 0; a \
             new metric requires a `type`"
        ))
    }
}

impl Setting {
    /// Reads the argument of `--manifest`.
    pub(super) fn parse_manifest(text: &str) -> Result<Setting, String> {
        let named = text.split_once(':').filter(|_| !Path::new(text).exists());
        let (name, path) = named.map_or((text, text), |(name, path)| (name, path.trim_start()));
        let manifest =
            manifests::read_load(path).map_err(|error| format!("{path}: {}", error.what))?;
        let file = ManifestFile { name: path.to_owned(), text: manifest, lenient: false };
        let hpas = HpaManifest::find(&file).map_err(|error| error.to_string())?;
        if hpas.is_empty() {
            return Err(format!("{path}: there is no HorizontalPodAutoscaler in this file"));
        }
        let (name, about) = (name.trim().to_owned(), path.to_owned());
        Ok(Setting { name, about, change: SettingChange::Manifest(hpas) })
    }

    /// The flag of the setting.
    pub(super) fn flag(&self) -> &'static str {
        match self.change {
            SettingChange::Fields(_) => "--set",
            SettingChange::Manifest(_) => "--manifest",
        }
    }

    /// Returns the HPAs of a scenario that the setting changes. `known` has all predicted HPAs.
    pub(super) fn changed<'h>(&self, hpas: &'h [HpaName], known: &[HpaName]) -> Vec<&'h HpaName> {
        let is_changed = |name: &&HpaName| match &self.change {
            SettingChange::Fields(fields) => {
                fields.iter().any(|field| field.hpa.as_ref().is_none_or(|hpa| *hpa == name.name))
            }
            SettingChange::Manifest(_) => !self.manifests_of(name, known).is_empty(),
        };
        hpas.iter().filter(is_changed).collect()
    }

    /// Returns true if the scenario of these HPAs contains those that the setting names, if it
    /// names any.
    pub(super) fn is_for(&self, hpas: &[HpaName], known: &[HpaName]) -> bool {
        let exists = |name: &str| hpas.iter().any(|hpa| *hpa.name == *name);
        match &self.change {
            SettingChange::Fields(fields) => {
                fields.iter().filter_map(|field| field.hpa.as_deref()).all(exists)
            }
            SettingChange::Manifest(_) => !self.changed(hpas, known).is_empty(),
        }
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

    /// Changes the HPAs of a scenario.
    pub(super) fn apply(
        &self,
        tree: &mut Value,
        hpas: &[HpaName],
        known: &[HpaName],
    ) -> Result<(), Failure> {
        if let SettingChange::Fields(fields) = &self.change {
            return apply_all(fields, tree).map_err(Failure::usage);
        }
        for hpa in hpas {
            if let [manifest] = *self.manifests_of(hpa, known) {
                let before = find_hpa(tree, Some(&hpa.name)).map_err(Failure::usage)?;
                replace(before, manifest)?;
            }
        }
        Ok(())
    }
}

/// Sets fields of HPAs.
fn apply_all(fields: &[Field], tree: &mut Value) -> Result<(), String> {
    let mut metrics = Vec::new();
    for field in fields {
        let hpa = find_hpa(tree, field.hpa.as_deref())?;
        metrics.push(hpa["spec"]["metrics"].as_array().map_or(0, Vec::len));
        field.apply(hpa)?;
    }
    // Several fields can add a metric together.
    for (field, metrics) in fields.iter().zip(metrics) {
        field.check_metric(find_hpa(tree, field.hpa.as_deref())?, metrics)?;
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

/// The only HPA of a scenario, or the one with this name.
fn find_hpa<'t>(tree: &'t mut Value, name: Option<&str>) -> Result<&'t mut Value, String> {
    let name_of = |hpa: &Value| hpa["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let hpas = match tree.get("hpas").is_some() {
        true => tree["hpas"].as_array_mut().map_or(&mut [][..], Vec::as_mut_slice),
        false => std::slice::from_mut(&mut tree["hpa"]),
    };
    let names: Vec<String> = hpas.iter().map(name_of).collect();
    match name {
        None if hpas.len() > 1 => Err(format!(
            "{} HPAs are predicted together: begin the path with the name of one, for example \
             {}/spec.maxReplicas=20; the HPAs are {}",
            names.len(),
            names[0],
            names.join(", ")
        )),
        None => hpas.first_mut().ok_or_else(|| "there is no HPA".to_owned()),
        Some(name) => {
            let found = names.iter().position(|known| known == name);
            let found = found.and_then(|index| hpas.get_mut(index));
            found
                .ok_or_else(|| format!("there is no HPA {name}; the HPAs are {}", names.join(", ")))
        }
    }
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
