//! Fields of HPAs by their paths, such as `spec.maxReplicas`.

use std::fmt;

use serde_json::Value;

use kube_autoscaler_models::counted::counted;

/// The path of a field of an HPA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldPath {
    /// The name of the HPA, if it is one of several.
    pub hpa: Option<String>,
    parts: Vec<String>,
}

/// The beginning of a path.
const SPEC: &str = "spec.";

impl FieldPath {
    /// Reads a path, for example `spec.maxReplicas`, `web/spec.maxReplicas` for one of several
    /// HPAs, or `spec.metrics[0].resource.target.averageUtilization`.
    ///
    /// # Errors
    /// If it is not the path of a field that settings can change.
    pub fn parse(path: &str) -> Result<FieldPath, String> {
        let (hpa, path) = match path.split_once('/') {
            Some((hpa, path)) if path.starts_with(SPEC) => (Some(hpa.to_owned()), path),
            _ => (None, path),
        };
        // `metrics[0]` is the same as `metrics.0`.
        let path = path.trim().replace('[', ".").replace(']', "");
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        if parts.first().is_none_or(|first| first != "spec") || parts.iter().any(String::is_empty) {
            return Err("the path must begin with `spec.`".to_owned());
        }
        match parts.get(1).map(String::as_str) {
            Some("template") => Err("a setting changes the HPA, not its target; for another \
                                     request in all settings, use --request, for example \
                                     --request cpu=300m"
                .to_owned()),
            Some("scaleTargetRef") => {
                Err("all settings have the same target, as they share its load".to_owned())
            }
            _ => Ok(FieldPath { hpa, parts }),
        }
    }

    /// Returns true if a text begins like a path.
    #[must_use]
    pub fn is_path(text: &str) -> bool {
        let text = text.trim_start();
        let after_hpa = text.split_once('/').filter(|(hpa, _)| !hpa.contains([':', '=', ',']));
        text.starts_with(SPEC) || after_hpa.is_some_and(|(_, path)| path.starts_with(SPEC))
    }

    /// Returns true if the path names this HPA, or none.
    #[must_use]
    pub fn is_for(&self, hpa: &str) -> bool {
        self.hpa.as_deref().is_none_or(|name| name == hpa)
    }

    /// The value of the field in an HPA. None: it is not set.
    #[must_use]
    pub fn get<'v>(&self, hpa: &'v Value) -> Option<&'v Value> {
        let entry = |value: &'v Value, part: &String| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            _ => value.get(part),
        };
        self.parts.iter().try_fold(hpa, entry).filter(|value| !value.is_null())
    }

    /// Sets the field of an HPA, and the fields that contain it.
    ///
    /// # Errors
    /// If the path leads to an element that does not exist, or through a value without fields.
    pub fn set(&self, hpa: &mut Value, value: Value) -> Result<(), String> {
        let path = || self.parts.join(".");
        let mut at = hpa;
        for part in &self.parts {
            let index = part.parse::<usize>().ok();
            if at.is_null() {
                let empty = serde_json::Map::new();
                *at = if index.is_some() { Value::Array(Vec::new()) } else { empty.into() };
            }
            at = match (at, index) {
                (Value::Array(items), Some(index)) => {
                    if index > items.len() {
                        let count = counted(items.len(), "element");
                        return Err(format!(
                            "{}: there is no element {index}: the list has {count}, and indices \
                             count from 0",
                            path()
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
                        path()
                    ));
                }
                _ => return Err(format!("{}: `{part}` can't be set there", path())),
            };
        }
        *at = value;
        Ok(())
    }

    /// Fails if the field belongs to a metric that did not exist before, and that is not complete.
    /// `before`: the number of metrics before the field was set.
    ///
    /// # Errors
    /// If the metric has no type.
    pub fn check_metric(&self, hpa: &Value, before: usize) -> Result<(), String> {
        let Some(index) = self.parts.get(2).filter(|_| self.parts[1] == "metrics") else {
            return Ok(());
        };
        let is_new = index.parse::<usize>().is_ok_and(|index| index >= before);
        let metric = &hpa["spec"]["metrics"][index.parse::<usize>().unwrap_or_default()];
        if !is_new || metric.get("type").is_some() {
            return Ok(());
        }
        let (path, count) = (self.parts.join("."), counted(before, "metric"));
        Err(format!(
            "{path}: there is no metric {index}: the HPA has {count}, and indices count from 0; a \
             new metric requires a `type`"
        ))
    }

    /// The only HPA among the fields of a scenario, or the one that the path names.
    ///
    /// # Errors
    /// If there is no such HPA, or if there are several and the path names none.
    pub fn find_hpa<'t>(&self, tree: &'t mut Value) -> Result<&'t mut Value, String> {
        find_hpa(tree, self.hpa.as_deref())
    }
}

/// The path without the name of the HPA.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}

/// The only HPA among the fields of a scenario, or the one with this name.
///
/// # Errors
/// If there is no such HPA, or if there are several and `name` is None.
pub fn find_hpa<'t>(tree: &'t mut Value, name: Option<&str>) -> Result<&'t mut Value, String> {
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

/// The value of a field as text.
#[must_use]
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(value_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, it): (&String, &Value)| format!("{name}: {}", value_text(it));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Splits at commas outside of brackets, braces and quotes.
#[must_use]
pub fn split_at_commas(text: &str) -> Vec<&str> {
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
