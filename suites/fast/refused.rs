//! Manifests that an API server refuses, and its errors: `suites/refused/` contains a manifest
//! `NAME.yaml` or `NAME.json`, and `NAME.txt`, what the API server of the newest release answers,
//! with the CRDs of the VPA's newest release. Only the API server writes these answers (see the
//! suite `api_server`): one line for each of its `causes`, or its message.
//!
//! An API server reports only the first value that it can't decode; this program reports all. An
//! API server reports that it does not evaluate rules in CEL if there are other errors; this
//! program evaluates them. The VPA's admission webhook is not part of the API server: its errors
//! are not compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use kube_lockstep_manifests::{DraftError, DraftOptions, ManifestFile, draft};
use rstest::rstest;

const HPA: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: KIND, name: NAME}
  maxReplicas: 10
";

/// The errors of a manifest in the API server's words.
fn refused(path: &PathBuf) -> BTreeSet<String> {
    let text = fs::read_to_string(path).expect("a manifest can be read");
    let file = |name: &str, text: String| ManifestFile { name: name.into(), text, lenient: false };
    let kind = ["Deployment", "StatefulSet", "ReplicaSet"]
        .into_iter()
        .find(|kind| text.contains(&format!("kind: {kind}\n")));
    let (_, name) = text.split_once("name: ").unwrap_or_default();
    let name = name.split([',', '}', '\n']).next().unwrap_or_default().to_owned();
    let mut files = vec![file("refused.yaml", text)];
    let hpa = |kind: &str| HPA.replace("KIND", kind).replace("NAME", &name);
    files.extend(kind.map(|kind| file("hpa.yaml", hpa(kind))));
    let read = |_: &str| Err("there is no other file".into());
    match draft(&files, &DraftOptions::default(), &read) {
        Err(DraftError::Invalid(error)) => {
            let is_from_webhook =
                |what: &str| what.starts_with("the VPA's admission webhook rejects");
            let server_problems =
                error.problems.iter().filter(|problem| !is_from_webhook(&problem.what));
            let server_problems = server_problems.map(|problem| {
                let place = problem.place.as_ref().expect("a position");
                assert!(place.line > 0 && place.column > 0, "{problem:?} has a position");
                let (_, message) = problem.what.split_once(": ").unwrap_or_default();
                assert!(problem.what.starts_with("the API server rejects this"), "{error}");
                message.to_owned()
            });
            server_problems.collect()
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[rstest]
fn a_manifest_is_refused_in_the_words_of_the_api_server(
    #[files("suites/refused/*.yaml")]
    #[files("suites/refused/*.json")]
    path: PathBuf,
) {
    let answer = fs::read_to_string(path.with_extension("txt")).expect("an answer");
    let ours = refused(&path);
    let all = || ours.iter().cloned().collect::<Vec<_>>().join("\n");
    let is_checked = |line: &&str| !line.starts_with("<nil>: Invalid value: null: some validation");
    let answer: String =
        answer.lines().filter(is_checked).map(|line| line.to_owned() + "\n").collect();
    let Some((_, message)) = answer.trim_end().split_once(" cannot be handled as a ") else {
        return assert_eq!(all() + "\n", answer);
    };
    let (_, message) = message.split_once(": ").expect("a message");
    match message.strip_prefix("strict decoding error: ") {
        Some(fields) => {
            let fields = fields.split(", ").map(|field| format!("strict decoding error: {field}"));
            assert_eq!(all(), Vec::from_iter(BTreeSet::from_iter(fields)).join("\n"));
        }
        None => assert!(ours.contains(message), "{message}\n is not among\n{}", all()),
    }
}
