//! The answers of a real API server to invalid manifests, and the types by which it decodes them:
//! `cargo test --features e2e --test api_server`.
//!
//! `suites/refused` has the manifests and the answers, which `refused` compares with this program's
//! errors. `UPDATE_REFUSED=1` writes the answers, and `UPDATE_API_TYPES=1` the types.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use kube_lockstep::engine::embedded::{Options, Running};
use kube_lockstep::model::rules::Release;
use libtest_mimic::Failed;
use serde_json::Value;
use support::repository;
use support::trials::Suite;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let mut suite = Suite::new("api_server");
    let program = suite.control_plane(Release::NEWEST);
    suite.test_with(&program, "invalid_manifests_have_their_answers", |program| answers(&program));
    suite.test_with(&program, "the_types_are_those_of_upstream", |_| types());
    suite.run()
}

fn answers(program: &Path) -> Result<(), Failed> {
    let running = Running::start(program, &Options::default())?;
    let kubeconfig = Kubeconfig::from_yaml(&running.admin_kubeconfig()?)?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(async {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        Ok::<_, Failed>(Client::try_from(config)?)
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
    assert!(manifests >= 20, "only {manifests} manifests");
    running.stop();
    Ok(())
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
    let request = axum::http::Request::post(uri).header("content-type", content);
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
    fs::copy(repository().join("suites/api_server/types.go"), folder.path().join("main.go"))?;
    let mut go = Command::new("go");
    go.args(["run", "-mod=mod", "."]).current_dir(folder.path());
    let output = go.env("GOFLAGS", "").env("GOWORK", "off").env("CGO_ENABLED", "0").output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let types = String::from_utf8(output.stdout)?;
    compare(&types, repository().join("src/scenario/api_types.txt"), "UPDATE_API_TYPES")
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
