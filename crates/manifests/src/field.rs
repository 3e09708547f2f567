//! Fields of autoscalers by their paths, such as `spec.maxReplicas`.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::AutoscalerKind;
use kube_autoscaler_models::counted::counted;

/// The path of a field of an HPA or a VPA, or of a flag of the components of a VPA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldPath {
    /// The kind of the autoscaler, if the path names it.
    pub kind: Option<AutoscalerKind>,
    /// The name of the autoscaler, if it is one of several.
    pub name: Option<String>,
    parts: Vec<String>,
}

/// The beginning of the path of a field.
const SPEC: &str = "spec.";

/// The beginnings of the paths of flags.
const FLAGS: [&str; 2] = ["recommender.flags.", "updater.flags."];

/// Returns true if a text begins like a path without the name of an autoscaler.
fn begins_path(text: &str) -> bool {
    text.starts_with(SPEC) || FLAGS.iter().any(|flags| text.starts_with(flags))
}

impl FieldPath {
    /// Reads a path, for example `spec.maxReplicas`, `web/spec.maxReplicas` for one of several
    /// autoscalers, `vpa/spec.updatePolicy.updateMode` for the VPA,
    /// `spec.metrics[0].resource.target.averageUtilization`, or
    /// `recommender.flags.target-cpu-percentile`.
    ///
    /// # Errors
    /// If it is not the path of a field that settings can change.
    pub fn parse(text: &str) -> Result<FieldPath, String> {
        let text = text.trim();
        let slashes = text.match_indices('/').map(|(at, _)| at + 1);
        let begin = [0].into_iter().chain(slashes).find(|at| begins_path(&text[*at..]));
        let (owner, path) = text.split_at(begin.unwrap_or(0));
        let owner: Vec<&str> = owner.split_terminator('/').collect();
        let kind = |text: &str| match text {
            "hpa" => Some(AutoscalerKind::Hpa),
            "vpa" => Some(AutoscalerKind::Vpa),
            _ => None,
        };
        let (kind, name) = match owner.as_slice() {
            [] => (None, None),
            [only] if kind(only).is_some() => (kind(only), None),
            [only] => (None, Some((*only).to_owned())),
            [first, name] if kind(first).is_some() => (kind(first), Some((*name).to_owned())),
            _ => return Err(format!("{text}: expected NAME/{SPEC}…, hpa/NAME/… or vpa/NAME/…")),
        };
        // Names of flags have no dots.
        let parts: Vec<String> = match FLAGS.iter().find(|flags| path.starts_with(**flags)) {
            Some(flags) => {
                let fields = flags.split_terminator('.').chain([&path[flags.len()..]]);
                fields.map(str::to_owned).collect()
            }
            // `metrics[0]` is the same as `metrics.0`.
            None => path.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect(),
        };
        if begin.is_none() || parts.iter().any(String::is_empty) {
            return Err(format!(
                "the path must begin with `{SPEC}`, or for flags of a VPA's components with `{}` \
                 or `{}`",
                FLAGS[0], FLAGS[1]
            ));
        }
        match parts.get(1).map(String::as_str) {
            Some("template") => Err("a setting changes the autoscaler, not its target; for \
                                     another request in all settings, use --request, for example \
                                     --request cpu=300m"
                .to_owned()),
            Some("scaleTargetRef" | "targetRef") => {
                Err("all settings have the same target, as they share its load".to_owned())
            }
            _ => Ok(FieldPath { kind, name, parts }),
        }
    }

    /// Returns true if a text begins like a path.
    #[must_use]
    pub fn is_path(text: &str) -> bool {
        let text = text.trim_start();
        let owner = text.find([':', '=', ',']).map_or(text, |end| &text[..end]);
        let slashes = owner.match_indices('/').map(|(at, _)| at + 1);
        [0].into_iter().chain(slashes).any(|at| begins_path(&text[at..]))
    }

    /// The component of a VPA and its flag, if the path is that of a flag.
    #[must_use]
    pub fn flag(&self) -> Option<(&str, &str)> {
        match self.parts.as_slice() {
            [component, flags, flag] if flags == "flags" => Some((component, flag)),
            _ => None,
        }
    }

    /// Adds a policy for each container to a VPA without policies, if the field is one of a policy.
    pub fn add_policies(&self, vpa: &mut Value, containers: &[Arc<str>]) {
        if !self.is_of_policy() || !vpa["metadata"]["name"].is_string() {
            return;
        }
        let policies = &mut vpa["spec"]["resourcePolicy"]["containerPolicies"];
        if policies.as_array().is_none_or(Vec::is_empty) {
            *policies = containers.iter().map(|name| json!({ "containerName": name })).collect();
        }
    }

    /// Returns true if the field is one of the policy of a container in a VPA.
    #[must_use]
    pub fn is_of_policy(&self) -> bool {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).take(3).collect();
        parts == ["spec", "resourcePolicy", "containerPolicies"] && self.parts.len() > 3
    }

    /// The value of the field in an autoscaler. None: it is not set.
    #[must_use]
    pub fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let entry = |value: &'v Value, part: &String| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            _ => value.get(part),
        };
        self.parts.iter().try_fold(object, entry).filter(|value| !value.is_null())
    }

    /// Sets the field of an autoscaler, and the fields that contain it.
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

    /// The kind of the autoscaler that has the field, of these HPAs and this VPA: without HPAs, the
    /// VPA; otherwise, that of the named autoscaler, or an HPA.
    #[must_use]
    pub fn kind_among(&self, hpas: &[&str], vpa: Option<&str>) -> AutoscalerKind {
        self.owner_among(hpas, vpa).0
    }

    /// Returns true if the field is one of the autoscaler with this kind and name, which is one of
    /// these HPAs and this VPA.
    #[must_use]
    pub fn is_of(
        &self,
        kind: AutoscalerKind,
        name: &str,
        hpas: &[&str],
        vpa: Option<&str>,
    ) -> bool {
        let (own_kind, own_name) = self.owner_among(hpas, vpa);
        let has_field = self.flag().is_none() || kind == AutoscalerKind::Vpa;
        has_field && own_kind == kind && own_name.is_none_or(|own| own == name)
    }

    /// The kind of the autoscaler that has the field, and its name if the path has one.
    fn owner_among(&self, hpas: &[&str], vpa: Option<&str>) -> (AutoscalerKind, Option<&str>) {
        let name = self.name.as_deref();
        let is_of_vpa = match (self.kind, name) {
            // `vpa/spec.maxReplicas` of an HPA with the name `vpa`.
            (Some(kind), None) if hpas.contains(&kind.word()) => {
                return (AutoscalerKind::Hpa, Some(kind.word()));
            }
            (Some(kind), _) => return (kind, name),
            (None, _) if self.flag().is_some() => true,
            (None, _) if hpas.is_empty() => vpa.is_some(),
            (None, None) => false,
            (None, Some(name)) => vpa == Some(name) && !hpas.contains(&name),
        };
        (if is_of_vpa { AutoscalerKind::Vpa } else { AutoscalerKind::Hpa }, name)
    }

    /// The object that has the field, among the fields of a scenario: an HPA, the VPA, or of a flag
    /// the scenario itself.
    ///
    /// # Errors
    /// If there is no such autoscaler, or if there are several and the path names none.
    pub fn find<'t>(&self, tree: &'t mut Value) -> Result<&'t mut Value, String> {
        let vpa = Some(name_of(&tree["vpa"])).filter(|_| !tree["vpa"].is_null());
        let names: Vec<&str> = hpas(tree).iter().map(name_of).collect();
        let (kind, named) = self.owner_among(&names, vpa);
        if kind == AutoscalerKind::Hpa {
            return find_hpa(tree, named);
        }
        match (vpa, named) {
            (None, _) if self.flag().is_some() => Err(format!(
                "{self}: this is a flag of a component of the VPA, but there is no VPA"
            )),
            (None, _) => Err("there is no VPA".to_owned()),
            _ if self.flag().is_some() => Ok(tree),
            (Some(_), _) if !tree["vpa"]["file"].is_null() => {
                Err("the VPA is in another file: write its manifest in the scenario, or name the \
                     manifests with --filename"
                    .to_owned())
            }
            (Some(vpa), Some(named)) if vpa != named => {
                Err(format!("there is no VPA {named}; the VPA is {vpa}"))
            }
            _ => Ok(&mut tree["vpa"]),
        }
    }
}

/// The path with the kind, but without the name of the autoscaler: `spec.maxReplicas`,
/// `vpa/spec.resourcePolicy`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(AutoscalerKind::Hpa) => f.write_str("hpa/")?,
            Some(AutoscalerKind::Vpa) => f.write_str("vpa/")?,
            None => {}
        }
        f.write_str(&self.parts.join("."))
    }
}

/// The HPAs among the fields of a scenario.
fn hpas(tree: &Value) -> &[Value] {
    match (tree.get("hpas"), tree.get("hpa")) {
        (Some(several), _) => several.as_array().map_or(&[], Vec::as_slice),
        (None, Some(only)) if !only.is_null() => std::slice::from_ref(only),
        _ => &[],
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The only HPA among the fields of a scenario, or the one with this name.
///
/// # Errors
/// If there is no such HPA, or if there are several and `name` is None.
pub fn find_hpa<'t>(tree: &'t mut Value, name: Option<&str>) -> Result<&'t mut Value, String> {
    let names: Vec<String> = hpas(tree).iter().map(|hpa| name_of(hpa).to_owned()).collect();
    let hpas = match tree.get("hpas").is_some() {
        true => tree["hpas"].as_array_mut().map_or(&mut [][..], Vec::as_mut_slice),
        false => std::slice::from_mut(&mut tree["hpa"]),
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).expect(text)
    }

    fn tree() -> Value {
        let object = |name: &str| json!({ "metadata": { "name": name }, "spec": { "of": name } });
        json!({ "hpas": [object("web"), object("api")], "vpa": object("sizes") })
    }

    /// The name of the object that a path leads to.
    fn found(text: &str, mut tree: Value) -> Result<String, String> {
        path(text).find(&mut tree).map(|object| name_of(object).to_owned())
    }

    #[test]
    fn a_path_names_an_autoscaler_or_a_flag() {
        for (text, name) in [
            ("web/spec.a", "web"),
            ("hpa/api/spec.a", "api"),
            ("vpa/spec.a", "sizes"),
            ("vpa/sizes/spec.a", "sizes"),
            ("sizes/spec.a", "sizes"),
        ] {
            assert_eq!(found(text, tree()), Ok(name.to_owned()), "{text}");
        }
        let error = |text: &str| found(text, tree()).expect_err(text);
        let mut named_vpa = tree();
        named_vpa["hpas"][0]["metadata"]["name"] = json!("vpa");
        assert_eq!(found("vpa/spec.a", named_vpa), Ok("vpa".to_owned()), "an HPA named vpa");
        assert!(error("spec.a").starts_with("2 HPAs are predicted together"));
        assert_eq!(error("hpa/sizes/spec.a"), "there is no HPA sizes; the HPAs are web, api");
        assert_eq!(error("vpa/web/spec.a"), "there is no VPA web; the VPA is sizes");
        let mut whole = tree();
        path("recommender.flags.target-cpu-percentile").find(&mut whole).expect("the scenario");
    }

    #[test]
    fn without_hpas_a_path_leads_to_the_vpa() {
        let mut only = tree();
        only["hpas"] = json!([]);
        assert_eq!(found("spec.a", only.clone()), Ok("sizes".to_owned()));
        only["vpa"] = json!({ "file": "vpa.yaml" });
        assert!(found("spec.a", only.clone()).expect_err("a file").contains("in another file"));
        only["vpa"] = Value::Null;
        let flag = "updater.flags.min-replicas";
        let error = found(flag, only).expect_err("no VPA");
        assert_eq!(
            error,
            format!("{flag}: this is a flag of a component of the VPA, but there is no VPA")
        );
    }

    #[test]
    fn paths_are_written_as_they_are_read() {
        for text in ["spec.a.b", "vpa/spec.a.0.b", "recommender.flags.a-b"] {
            assert_eq!(path(text).to_string(), text);
            assert!(FieldPath::is_path(text), "{text}");
        }
        assert_eq!(path("spec.a[0].b").to_string(), "spec.a.0.b");
        for wrong in ["flags.a=1", "recommender.start", "a/b/c/spec.x", "x", "spec.", "spec..a"] {
            assert!(FieldPath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
