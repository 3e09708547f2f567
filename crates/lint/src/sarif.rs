//! Findings in the format SARIF 2.1.0, for code scanning.
//!
//! Deliberately absent: the types of the crate `serde-sarif`. They cover all of SARIF, while a log
//! of findings is one nested object of twenty fields, which a test compares with what code
//! scanning requires.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Finding, Rule};

/// The schema of the format.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The page with the rules.
const DOCS: &str = "https://github.com/kube-lockstep/kube-lockstep/blob/main/docs/lint.md";

/// A log with all findings of these rules. `path` gives the path of a file in the repository.
#[must_use]
pub fn log(
    findings: &[Finding],
    rules: &[&Rule],
    version: &str,
    path: &dyn Fn(&str) -> String,
) -> Value {
    let results = findings.iter().map(|finding| result(finding, rules, path));
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kube-lockstep",
                "semanticVersion": version,
                "informationUri": DOCS,
                "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Value>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Value>(),
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    let Rule { id, level, summary, reason, link, .. } = rule;
    json!({
        "id": id,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": reason},
        "help": {
            "text": format!("{reason}\n{link}"),
            "markdown": format!("{reason} [More]({link})"),
        },
        "helpUri": link,
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["kubernetes", "autoscaling"]},
    })
}

fn result(finding: &Finding, rules: &[&Rule], path: &dyn Fn(&str) -> String) -> Value {
    let Finding { rule, evidence, diagnostic, object, .. } = finding;
    let place = diagnostic.place.as_deref();
    let file = path(diagnostic.file().unwrap_or_default());
    let namespace = object.namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
    json!({
        "ruleId": rule.id,
        "ruleIndex": rules.iter().position(|it| it.id == rule.id),
        "level": rule.level,
        "message": {"text": diagnostic.in_one_line("\nhint: ")},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": location(&file),
                "region": {
                    "startLine": place.map_or(1, |place| place.line),
                    "startColumn": place.map_or(1, |place| place.column),
                },
            },
            "logicalLocations": [{
                "name": object.name,
                "fullyQualifiedName": format!("{} {namespace}{}", object.kind, object.name),
                "kind": "resource",
            }],
        }],
        "properties": {"evidence": evidence},
    })
}

/// A file: in the repository if its path is relative.
fn location(path: &str) -> Value {
    let uri = uri(path);
    match Path::new(path).is_absolute() {
        true => json!({"uri": format!("file:///{}", uri.trim_start_matches('/'))}),
        false => json!({"uri": uri, "uriBaseId": "%SRCROOT%"}),
    }
}

/// A path as the reference of a URI.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.strip_prefix("./").unwrap_or(path).replace('\\', "/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::{location, uri};
    use serde_json::json;

    #[cfg(unix)]
    #[test]
    fn a_file_outside_of_the_repository_has_a_whole_uri() {
        assert_eq!(location("/tmp/a web.yaml"), json!({"uri": "file:///tmp/a%20web.yaml"}));
        let below = json!({"uri": "hpa/web.yaml", "uriBaseId": "%SRCROOT%"});
        assert_eq!(location("./hpa/web.yaml"), below);
    }

    #[test]
    fn paths_are_references_of_uris() {
        for (path, expected) in [
            ("hpa/web.yaml", "hpa/web.yaml"),
            ("./hpa/my web.yaml", "hpa/my%20web.yaml"),
            ("hpa\\wéb.yaml", "hpa/w%C3%A9b.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
            ("a:b.yaml", "a%3Ab.yaml"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
