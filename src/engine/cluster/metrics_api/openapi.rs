//! How the metrics APIs describe themselves, as OpenAPI 2 and 3: for an API server that joins such
//! descriptions into its own, and for `kubectl explain`.
//!
//! Upstream: k8s.io/metrics, pkg/apis; kube-openapi, pkg/handler3

use serde_json::{Map, Value, json};

use crate::engine::cluster::metrics_api::groups::GROUPS;

/// What the description is called.
const TITLE: &str = "kube-lockstep metrics";

/// A kind of which lists are served.
struct Kind {
    name: &'static str,
    description: &'static str,
    properties: Value,
}

/// The kind of a group's version.
fn kind(group: &str, version: &str) -> Kind {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let time = json!({
        "type": "string", "format": "date-time", "description": "When the sample was taken",
    });
    let window = text("The time over which the sample was taken");
    let object = |what: &str| json!({ "type": "object", "description": what });
    let labels = json!({
        "type": "object",
        "additionalProperties": { "type": "string" },
        "description": "Labels of the series",
    });
    match group {
        "metrics.k8s.io" => {
            let container = json!({
                "type": "object",
                "properties": {
                    "name": text("The container's name"),
                    "usage": {
                        "type": "object",
                        "additionalProperties": { "type": "string" },
                        "description": "Quantities by resource",
                    },
                },
            });
            let containers = json!({
                "type": "array", "items": container, "description": "Usage by container",
            });
            Kind {
                name: "PodMetrics",
                description: "Usage of a pod, as a scenario says",
                properties: json!({
                    "timestamp": time, "window": window, "containers": containers,
                }),
            }
        }
        "custom.metrics.k8s.io" => {
            let mut properties = json!({
                "describedObject": object("The object that the metric is of"),
                "timestamp": time,
                "value": text("A quantity"),
            });
            let seconds = json!({
                "type": "integer", "format": "int64",
                "description": "The time over which the sample was taken, in seconds",
            });
            if version == "v1beta1" {
                properties["metricName"] = text("The metric's name");
                properties["window"] = seconds;
            } else {
                properties["metric"] = object("The metric's name and selector");
                properties["windowSeconds"] = seconds;
            }
            let description = "A value of a custom metric, as a scenario says";
            Kind { name: "MetricValue", description, properties }
        }
        _ => Kind {
            name: "ExternalMetricValue",
            description: "A value of an external metric, as a scenario says",
            properties: json!({
                "metricName": text("The metric's name"),
                "metricLabels": labels,
                "timestamp": time,
                "value": text("A quantity"),
            }),
        },
    }
}

/// The full name of a kind, as those of Go's packages are.
fn full(group: &str, version: &str, name: &str) -> String {
    let package = match group {
        "metrics.k8s.io" => "metrics",
        "custom.metrics.k8s.io" => "custom_metrics",
        _ => "external_metrics",
    };
    format!("io.k8s.metrics.pkg.apis.{package}.{version}.{name}")
}

/// The kind, and that of its lists.
fn schemas(group: &str, version: &str, place: &str) -> Map<String, Value> {
    let Kind { name, description, mut properties } = kind(group, version);
    for field in ["apiVersion", "kind"] {
        properties[field] = json!({ "type": "string" });
    }
    if group == "metrics.k8s.io" {
        properties["metadata"] = json!({
            "type": "object", "description": "Name, namespace and labels of the pod",
        });
    }
    let kind = |name: &str| json!([{ "group": group, "version": version, "kind": name }]);
    let schema = json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "x-kubernetes-group-version-kind": kind(name),
    });
    let item = full(group, version, name);
    let list = json!({
        "type": "object",
        "description": format!("A list of {name}"),
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object" },
            "items": { "type": "array", "items": { "$ref": format!("{place}{item}") } },
        },
        "x-kubernetes-group-version-kind": kind(&format!("{name}List")),
    });
    [(item, schema), (full(group, version, &format!("{name}List")), list)].into_iter().collect()
}

/// The paths of a group's version: address, whether a single object is there, and parameters.
fn addresses(group: &str, version: &str) -> Vec<(String, bool, Vec<&'static str>)> {
    let base = format!("/apis/{group}/{version}");
    let within = format!("{base}/namespaces/{{namespace}}");
    match group {
        "metrics.k8s.io" => vec![
            (format!("{base}/pods"), false, vec![]),
            (format!("{within}/pods"), false, vec!["namespace"]),
            (format!("{within}/pods/{{name}}"), true, vec!["name", "namespace"]),
        ],
        "custom.metrics.k8s.io" => vec![
            (
                format!("{within}/{{resource}}/{{name}}/{{metric}}"),
                false,
                vec!["namespace", "resource", "name", "metric"],
            ),
            (format!("{within}/metrics/{{metric}}"), false, vec!["namespace", "metric"]),
        ],
        _ => vec![(format!("{within}/{{metric}}"), false, vec!["namespace", "metric"])],
    }
}

/// What is done at the paths; `answer` makes the answer's part by the kind that it refers to.
fn paths(
    (group, version): (&str, &str),
    parameter: &dyn Fn(&str) -> Value,
    answer: &dyn Fn(&str) -> Value,
) -> Map<String, Value> {
    let kind = kind(group, version);
    let one = |(index, (address, single, parameters)): (usize, (String, bool, Vec<&str>))| {
        let name = if single { kind.name.to_owned() } else { format!("{}List", kind.name) };
        let id: String = format!("read-{group}-{version}-{name}-{index}");
        let operation = json!({
            "operationId": id.replace(['.', '-'], "_"),
            "description": kind.description,
            "parameters": parameters.iter().map(|it| parameter(it)).collect::<Vec<_>>(),
            "responses": { "200": answer(&full(group, version, &name)) },
            "x-kubernetes-action": if single { "get" } else { "list" },
            "x-kubernetes-group-version-kind": {
                "group": group, "version": version, "kind": kind.name,
            },
        });
        (address, json!({ "get": operation }))
    };
    addresses(group, version).into_iter().enumerate().map(one).collect()
}

fn versions() -> impl Iterator<Item = (&'static str, &'static str)> {
    GROUPS
        .into_iter()
        .flat_map(|(group, versions)| versions.iter().map(move |version| (group, *version)))
}

fn info() -> Value {
    json!({ "title": TITLE, "version": env!("CARGO_PKG_VERSION") })
}

/// All of it, as OpenAPI 2.
pub(crate) fn v2() -> Value {
    let place = "#/definitions/";
    let parameter =
        |name: &str| json!({ "name": name, "in": "path", "required": true, "type": "string" });
    let answer =
        |kind: &str| json!({ "description": "OK", "schema": { "$ref": format!("{place}{kind}") } });
    let mut all = (Map::new(), Map::new());
    for (group, version) in versions() {
        all.0.extend(paths((group, version), &parameter, &answer));
        all.1.extend(schemas(group, version, place));
    }
    json!({ "swagger": "2.0", "info": info(), "paths": all.0, "definitions": all.1 })
}

/// Where the parts of OpenAPI 3 are.
pub(crate) fn v3() -> Value {
    let part = |(group, version): (&str, &str)| {
        let path = format!("apis/{group}/{version}");
        // It is the same for as long as the program is.
        let url = format!("/openapi/v3/{path}?hash={}", env!("CARGO_PKG_VERSION"));
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": versions().map(part).collect::<Map<_, _>>() })
}

/// One of them.
pub(crate) fn v3_of(group: &str, version: &str) -> Option<Value> {
    versions().find(|it| *it == (group, version))?;
    let place = "#/components/schemas/";
    let parameter = |name: &str| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    };
    let answer = |kind: &str| {
        let schema = json!({ "$ref": format!("{place}{kind}") });
        json!({ "description": "OK", "content": { "application/json": { "schema": schema } } })
    };
    Some(json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths((group, version), &parameter, &answer),
        "components": { "schemas": schemas(group, version, place) },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is referred to.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn references_in_the_openapi_document_resolve() {
        let v2 = v2();
        let mut found = Vec::new();
        references(&v2, &mut found);
        assert!(found.len() > 7, "{found:?}");
        for name in found {
            let name = name.strip_prefix("#/definitions/").expect("a definition");
            assert!(v2["definitions"][name].is_object(), "{name}");
        }
        for (group, version) in versions() {
            let root = v3();
            let path = format!("apis/{group}/{version}");
            let url = root["paths"][&path]["serverRelativeURL"].as_str().unwrap_or_default();
            assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
            let v3 = v3_of(group, version).expect("a version");
            let mut found = Vec::new();
            references(&v3, &mut found);
            for name in found {
                let name = name.strip_prefix("#/components/schemas/").expect("a schema");
                assert!(v3["components"]["schemas"][name].is_object(), "{name}");
            }
        }
        assert_eq!(v3_of("metrics.k8s.io", "v1"), None);
    }
}
