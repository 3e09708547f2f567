//! The answers of a real API server with upstream's CRDs of the VPA to invalid manifests, and the
//! types and schemas by which it decodes them.
//!
//! `suites/refused` has the manifests and the answers, which the suite `refused` compares with this
//! program's errors. `UPDATE_REFUSED=1` writes the answers, and `UPDATE_API_TYPES=1` the types.

mod fields;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::repository;
use crate::support::trials::Suite;
use axum::http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_clusters::embedded::{Options, Running};
use kube_lockstep_engines::upstream::recommender::deploy;
use kube_lockstep_scenario as scenario;
use libtest_mimic::Failed;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// How long the API server may take to serve VPAs after their definition.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let program = suite.control_plane(Release::NEWEST);
    let definitions =
        suite.require(|| deploy::manifests(VpaRelease::NEWEST, &CancellationToken::new()));
    let required = program.and(&definitions);
    suite.test_with(&required, "invalid_manifests_have_their_answers", |(program, manifests)| {
        answers(&program, &definitions_in(&manifests)?)
    });
    suite.test_with(&definitions, "the_types_of_vpas_are_those_of_the_crd", |manifests| {
        let types = fields::types_of_vpas(&definitions_in(&manifests)?)?;
        let path = repository().join("crates/scenario/src/vpa_types.txt");
        compare(&types, path, "UPDATE_API_TYPES")
    });
    suite.test_with(&program, "the_types_are_those_of_upstream", |_| types());
}

/// The CRDs among the objects of manifests.
fn definitions_in(manifests: &[String]) -> Result<Vec<Value>, Failed> {
    let mut definitions = Vec::new();
    for text in manifests {
        let objects = scenario::manifests(text).map_err(|problem| problem.what)?;
        let is_definition = |object: &Value| object["kind"] == "CustomResourceDefinition";
        definitions.extend(objects.into_iter().filter(is_definition));
    }
    Ok(definitions)
}

fn answers(program: &Path, definitions: &[Value]) -> Result<(), Failed> {
    let running = Running::start(program, &Options::default())?;
    let kubeconfig = Kubeconfig::from_yaml(&running.admin_kubeconfig()?)?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(async {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        let client = Client::try_from(config)?;
        define(&client, definitions).await?;
        Ok::<_, Failed>(client)
    })?;
    let mut manifests = 0;
    for entry in fs::read_dir(repository().join("suites/refused"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension != "txt") {
            let answer = runtime.block_on(answer(&client, &path))?;
            compare(&answer, path.with_extension("txt"), "UPDATE_REFUSED")?;
            manifests += 1;
        }
    }
    assert!(manifests >= 40, "only {manifests} manifests");
    running.stop();
    Ok(())
}

/// Creates CRDs, and waits until VPAs are served.
async fn define(client: &Client, definitions: &[Value]) -> Result<(), Failed> {
    for definition in definitions {
        let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(definition)?)?;
        client.request::<Value>(request).await?;
    }
    let begin = Instant::now();
    loop {
        let path = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers";
        match client.request::<Value>(Request::get(path).body(Vec::new())?).await {
            Ok(_) => return Ok(()),
            Err(error) if begin.elapsed() > TIMEOUT => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The causes for which the API server rejects a manifest, or its message.
async fn answer(client: &Client, path: &Path) -> Result<String, Failed> {
    let text = fs::read_to_string(path)?;
    let word = |name: &str| {
        let (_, rest) = text.split_once(name).unwrap_or_default();
        let rest = rest.trim_start_matches(['"', ':', ' ']);
        rest.split(['"', '\n']).next().unwrap_or_default().to_owned()
    };
    let (version, resource) = (word("apiVersion"), word("kind").to_lowercase() + "s");
    let uri =
        format!("/apis/{version}/namespaces/default/{resource}?fieldValidation=Strict&dryRun=All");
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let content = if is_json { "application/json" } else { "application/yaml" };
    let request = Request::post(uri).header("content-type", content);
    let request = request.body(text.into_bytes())?;
    let status = match client.request::<Value>(request).await {
        Err(Error::Api(status)) => status,
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(format!("{} is accepted", path.display()).into()),
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: BTreeSet<String> =
        causes.map(|cause| format!("{}: {}\n", cause.field, cause.message)).collect();
    let message = format!("{}\n", status.message);
    Ok(if causes.is_empty() { message } else { causes.into_iter().collect() })
}

/// Prints the types with upstream's modules of the newest release.
fn types() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let modules = repository().join("upstream/controlplane/versions");
    let version = format!("v{}", Release::NEWEST);
    for extension in ["mod", "sum"] {
        let to = folder.path().join(format!("go.{extension}"));
        fs::copy(modules.join(format!("{version}.{extension}")), to)?;
    }
    fs::copy(
        repository().join("suites/clusters/api_server/types.go"),
        folder.path().join("main.go"),
    )?;
    let go = |command| -> Result<String, Failed> {
        let mut go = Command::new("go");
        go.args([command, "-mod=mod", "."]).current_dir(folder.path());
        let output = go.env("GOFLAGS", "").env("GOWORK", "off").env("CGO_ENABLED", "0").output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    go("vet")?;
    let types = go("run")?;
    compare(&types, repository().join("crates/scenario/src/api_types.txt"), "UPDATE_API_TYPES")
}

/// Compares a text with a file, or writes the file if the variable is set.
fn compare(text: &str, path: PathBuf, variable: &str) -> Result<(), Failed> {
    if std::env::var_os(variable).is_some() {
        fs::write(&path, text)?;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}; {variable}=1 writes it", path.display());
    Ok(())
}
