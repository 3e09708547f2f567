//! The OpenAPI 2 and 3 documents of the metrics APIs, which an API server merges into its own, and
//! which `kubectl explain` uses. The schemas are in `openapi.json`.
//!
//! Upstream: k8s.io/metrics, pkg/apis; kube-openapi, pkg/handler3

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cluster::metrics_api::groups::{Endpoint, GroupVersion, QUERIES, QueryPath, versions};

const TITLE: &str = "kube-lockstep metrics";

/// The kinds, one for each version of a group.
const KINDS_JSON: &str = include_str!("openapi.json");

/// The kind of the objects in an API version. Lists of them are also served.
#[derive(Deserialize)]
struct KindSchema {
    group: String,
    version: String,
    /// The prefix of the full name, derived from the name of the Go package.
    package: String,
    kind: String,
    description: String,
    properties: Map<String, Value>,
}

/// The differences between OpenAPI 2 and 3.
struct Dialect {
    /// The path of the schemas in the document.
    schemas: &'static str,
    parameter: fn(&str) -> Value,
    /// The response that has a schema.
    response: fn(Value) -> Value,
}

const V2: Dialect = Dialect {
    schemas: "#/definitions/",
    parameter: |name| json!({ "name": name, "in": "path", "required": true, "type": "string" }),
    response: |schema| json!({ "description": "OK", "schema": schema }),
};

const V3: Dialect = Dialect {
    schemas: "#/components/schemas/",
    parameter: |name| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    },
    response: |schema| {
        let content = json!({ "application/json": { "schema": schema } });
        json!({ "description": "OK", "content": content })
    },
};

impl KindSchema {
    fn new(version: GroupVersion) -> Option<KindSchema> {
        let kinds: Vec<KindSchema> = serde_json::from_str(KINDS_JSON).unwrap_or_default();
        kinds.into_iter().find(|it| it.group == version.group && it.version == version.version)
    }

    fn list(&self) -> String {
        format!("{}List", self.kind)
    }

    fn full_name(&self, kind: &str) -> String {
        format!("io.k8s.metrics.pkg.apis.{}.{}.{kind}", self.package, self.version)
    }

    fn reference(&self, kind: &str, dialect: &Dialect) -> Value {
        json!({ "$ref": format!("{}{}", dialect.schemas, self.full_name(kind)) })
    }

    fn group_version_kind(&self, kind: &str) -> Value {
        json!({ "group": self.group, "version": self.version, "kind": kind })
    }

    /// The schemas of the kind and of its list.
    fn schemas(&self, dialect: &Dialect) -> [(String, Value); 2] {
        let text = json!({ "type": "string" });
        let mut properties = self.properties.clone();
        properties.extend(["apiVersion", "kind"].map(|name| (name.to_owned(), text.clone())));
        let object = json!({
            "type": "object",
            "description": self.description,
            "properties": properties,
            "x-kubernetes-group-version-kind": [self.group_version_kind(&self.kind)],
        });
        let list = json!({
            "type": "object",
            "description": format!("A list of {}", self.kind),
            "required": ["items"],
            "properties": {
                "apiVersion": text,
                "kind": text,
                "metadata": { "type": "object" },
                "items": { "type": "array", "items": self.reference(&self.kind, dialect) },
            },
            "x-kubernetes-group-version-kind": [self.group_version_kind(&self.list())],
        });
        [(self.full_name(&self.kind), object), (self.full_name(&self.list()), list)]
    }

    /// The description of a query.
    fn path(&self, query: &QueryPath, dialect: &Dialect) -> Value {
        let is_single = query.endpoint == Endpoint::Pod;
        let kind = if is_single { self.kind.clone() } else { self.list() };
        let names = query.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
        let id = format!("read_{}_{}_{:?}", self.package, self.version, query.endpoint);
        json!({ "get": {
            "operationId": id,
            "description": self.description,
            "parameters": names.map(dialect.parameter).collect::<Vec<_>>(),
            "responses": { "200": (dialect.response)(self.reference(&kind, dialect)) },
            "x-kubernetes-action": if is_single { "get" } else { "list" },
            "x-kubernetes-group-version-kind": self.group_version_kind(&self.kind),
        } })
    }
}

/// The paths and the schemas of these versions.
fn describe(
    versions: impl Iterator<Item = GroupVersion>,
    dialect: &Dialect,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for version in versions {
        let Some(kind) = KindSchema::new(version) else { continue };
        schemas.extend(kind.schemas(dialect));
        let is_described =
            |it: &&QueryPath| it.group == version.group && it.endpoint != Endpoint::Nodes;
        for query in QUERIES.iter().filter(is_described) {
            let path = format!("{}/{}", version.path(), query.path);
            paths.insert(path, kind.path(query, dialect));
        }
    }
    (paths, schemas)
}

fn info() -> Value {
    json!({ "title": TITLE, "version": env!("CARGO_PKG_VERSION") })
}

/// The OpenAPI 2 document of all versions.
pub(crate) fn v2() -> Value {
    let (paths, definitions) = describe(versions(), &V2);
    json!({ "swagger": "2.0", "info": info(), "paths": paths, "definitions": definitions })
}

/// The index of the OpenAPI 3 documents.
pub(crate) fn v3() -> Value {
    let document = |of: GroupVersion| {
        let path = of.path();
        // A document only changes with the version of this program.
        let url = format!("/openapi/v3{path}?hash={}", env!("CARGO_PKG_VERSION"));
        (path.trim_start_matches('/').to_owned(), json!({ "serverRelativeURL": url }))
    };
    json!({ "paths": versions().map(document).collect::<Map<_, _>>() })
}

/// The OpenAPI 3 document of a version.
pub(crate) fn v3_of(group: &str, version: &str) -> Option<Value> {
    let found = versions().find(|it| (it.group, it.version) == (group, version))?;
    let (paths, schemas) = describe(std::iter::once(found), &V3);
    Some(json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All references in a document.
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
    fn every_reference_leads_to_a_schema() {
        let v2 = v2();
        let mut found = Vec::new();
        references(&v2, &mut found);
        assert!(found.len() > 7, "{found:?}");
        for name in found {
            let name = name.strip_prefix("#/definitions/").expect("a definition");
            assert!(v2["definitions"][name].is_object(), "{name}");
        }
        for of in versions() {
            let index = v3();
            let path = format!("apis/{}", of.api_version());
            let url = index["paths"][&path]["serverRelativeURL"].as_str().unwrap_or_default();
            assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
            let v3 = v3_of(of.group, of.version).expect("a version");
            let mut found = Vec::new();
            references(&v3, &mut found);
            assert!(found.len() >= 2, "{path}: {found:?}");
            for name in found {
                let name = name.strip_prefix("#/components/schemas/").expect("a schema");
                assert!(v3["components"]["schemas"][name].is_object(), "{name}");
            }
        }
        assert_eq!(v3_of("metrics.k8s.io", "v1"), None);
    }
}
