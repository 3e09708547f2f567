//! Settings of an HPA that `compare` predicts: some of its fields, or another manifest.

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use super::manifests;
use crate::scenario::Scenario;

/// A setting.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    /// The fields or the file, as they were given.
    pub(super) about: String,
    change: Change,
}

/// The change that a setting makes.
#[derive(Clone, PartialEq, Debug)]
enum Change {
    /// Some fields.
    Fields(Vec<Field>),
    /// The whole manifest.
    Manifest {
        /// The file.
        path: String,
        /// The name of its HPA.
        hpa: String,
    },
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
        let name = text.split_once(':').filter(|(name, _)| !name.contains(['=', '.']));
        let (name, fields) = name.unwrap_or((text, text));
        let changes = split(fields).into_iter().map(Field::parse).collect::<Result<_, _>>()?;
        Ok(Setting {
            name: name.trim().to_owned(),
            about: fields.to_owned(),
            change: Change::Fields(changes),
        })
    }
}

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
            Some((hpa, path)) if path.starts_with("spec.") => (Some(hpa.to_owned()), path),
            _ => (None, path),
        };
        // `metrics[0]` is the same as `metrics.0`.
        let path = path.replace('[', ".").replace(']', "");
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.first().is_none_or(|first| first != "spec") || path.iter().any(String::is_empty) {
            return Err(format!("{part}: the path begins with `spec.`"));
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
                (Value::Array(items), Some(index)) if index <= items.len() => {
                    if index == items.len() {
                        items.push(Value::Null);
                    }
                    &mut items[index]
                }
                (Value::Array(_), Some(index)) => {
                    return Err(format!("{}: there is no element {index}", self.path.join(".")));
                }
                (Value::Object(fields), _) => fields.entry(part.clone()).or_insert(Value::Null),
                _ => return Err(format!("{}: `{part}` can't be set there", self.path.join("."))),
            };
        }
        *at = self.value.clone();
        Ok(())
    }
}

impl Setting {
    /// Reads the argument of `--manifest`.
    pub(super) fn of_manifest(text: &str) -> Result<Setting, String> {
        let named = text.split_once(':').filter(|_| !Path::new(text).exists());
        let (name, path) = named.unwrap_or((text, text));
        let manifest = manifests::read_load(path).map_err(|error| format!("{path}: {error}"))?;
        let manifest: Value =
            serde_yaml::from_str(&manifest).map_err(|error| format!("{path}: {error}"))?;
        let hpa = manifest["metadata"]["name"].as_str().filter(|_| {
            manifest["kind"].as_str().is_some_and(|kind| kind == "HorizontalPodAutoscaler")
        });
        let hpa = hpa.ok_or_else(|| format!("{path}: this is not the manifest of one HPA"))?;
        let change = Change::Manifest { path: path.to_owned(), hpa: hpa.to_owned() };
        Ok(Setting { name: name.trim().to_owned(), about: path.to_owned(), change })
    }

    /// The flag of the setting.
    pub(super) fn flag(&self) -> &'static str {
        match self.change {
            Change::Fields(_) => "--set",
            Change::Manifest { .. } => "--manifest",
        }
    }

    /// The file of the manifest.
    pub(super) fn manifest(&self) -> Option<&str> {
        match &self.change {
            Change::Fields(_) => None,
            Change::Manifest { path, .. } => Some(path),
        }
    }

    /// Returns true if the scenario contains the HPAs that the setting names, if it names any.
    pub(super) fn is_for(&self, scenario: &Scenario) -> bool {
        let exists = |name: &str| scenario.hpas.iter().any(|hpa| *hpa.name == *name);
        match &self.change {
            Change::Fields(fields) => {
                fields.iter().filter_map(|field| field.hpa.as_deref()).all(exists)
            }
            Change::Manifest { hpa, .. } => exists(hpa),
        }
    }

    /// Changes the HPAs of a scenario.
    pub(super) fn apply(&self, tree: &mut Value) -> Result<(), String> {
        match &self.change {
            Change::Fields(fields) => {
                for field in fields {
                    field.apply(find_hpa(tree, field.hpa.as_deref())?)?;
                }
            }
            Change::Manifest { path, hpa } => {
                *find_hpa(tree, Some(hpa))? = serde_json::json!({ "file": path });
            }
        }
        Ok(())
    }
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
