//! The files for other machines: the scripts of the nightly workflow, of the action and of the
//! indexed Job run unchanged, on engines that do not require Go. The suite also runs `ci/resolve`,
//! which adds a release, and the scripts of a release of this program.
//!
//! The scripts require bash and jq; without them, the tests are reported as ignored.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::trials::Suite;
#[cfg(feature = "e2e")]
use k8s_openapi::api::batch::v1::Job;
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_engines::upstream::build;
use libtest_mimic::Failed;
use serde_json::Value;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    suite.test("every_workflow_is_complete", workflows);
    suite.test("each_step_of_ci_run_has_a_job", steps_have_jobs);
    let types = suite.require_that("--features e2e", || cfg!(feature = "e2e"));
    suite.test_with(&types, "the_job_is_a_valid_manifest", |()| manifest());
    suite.test("control_planes_have_the_versions_of_the_engines", control_planes);
    // The next tests start scripts of ci/, or run every fixture several times.
    suite.ignore_by_default();
    suite.test("the_pods_of_the_job_share_the_run", pods);
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let programs = suite.require_that("bash and jq", move || has("bash") && has("jq"));
    let bash = suite.require_that("bash", move || has("bash"));
    suite.test_with(&programs, "the_nightly_workflow_runs", |()| nightly_workflow_runs());
    suite.test_with(&bash, "the_action_runs_and_reports", |()| action());
    suite.test_with(&bash, "the_action_checks_a_change", |()| action_gate());
    suite.test_with(&bash, "the_action_chooses_the_version", |()| action_version());
    suite.test_with(&bash, "the_action_installs_a_released_program", |()| action_installs());
    suite.test_with(&bash, "the_action_installs_on_windows", |()| action_installs_on_windows());
    suite.test_with(&bash, "the_krew_manifest_names_the_archives", |()| krew());
    suite.test_with(&bash, "the_notes_of_a_release_are_in_the_changelog", |()| release_notes());
    suite.test_with(&bash, "a_released_program_runs_in_an_empty_root", |()| release_check());
    let images = suite.require_that("bash, jq and certificates", move || {
        has("bash") && has("jq") && Path::new("/etc/ssl/certs/ca-certificates.crt").exists()
    });
    suite.test_with(&images, "the_images_of_a_release_have_tags", |()| release_images());
    suite.test_with(&programs, "a_changed_trace_fails", |()| changed_traces_fail());
    // The build fills Go's module cache.
    let upstream = suite.upstream(Release::NEWEST);
    suite.test_with(&upstream, "one_command_adds_a_release", |_| newest_release_resolves());
}

/// `ci/verify-recorded` calls cargo, for which programs stand in that record different traces.
fn changed_traces_fail() -> Result<(), Failed> {
    let section = |body: &str, versions: &[&str], sources: &str| {
        let builds = versions.iter().map(|version| format!("release {version} {sources}\n"));
        format!("{}body {body}\n{{}}\n", builds.collect::<String>())
    };
    let (new, old) = (section("b", &["v1.37.2"], "a"), section("a", &["v1.36.3", "v1.35.4"], "a"));
    let file =
        |sections: &[&str]| format!("scenario zero/one 1\nengine upstream\n{}", sections.concat());
    let both = file(&[&new, &old]);
    let check = |recorded: &str| -> Result<Output, Failed> {
        let machine = Machine::new()?;
        machine.copy_script_of_recording("zero/one", &both)?;
        let stand_in = format!("printf '{recorded}' > suites/recorded/zero/one.trace\n");
        machine.program("path/cargo", &stand_in)?;
        machine.run(BASH, "ci/verify-recorded", &Variables::new())
    };
    let expect = |sections: &[&str], changed: &[&str]| -> Result<(), Failed> {
        let output = check(&file(sections))?;
        let (shown, errors) = (text_of(&output.stdout), text_of(&output.stderr));
        assert_eq!(output.status.success(), changed.is_empty(), "{shown}{errors}");
        let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("zero/")).collect();
        assert_eq!(lines, changed, "{shown}{errors}");
        Ok(())
    };
    expect(&[&new, &old], &[])?;
    // Another build of a release, with the same traces.
    expect(&[&section("b", &["v1.37.3"], "c"), &old], &[])?;
    expect(&[&section("c", &["v1.37.2"], "a"), &old], &["zero/one 1.37"])?;
    expect(&[&old], &["zero/one 1.37"])?;
    // Both traces are the same, but 1.36 now behaves like 1.37.
    let moved = [section("b", &["v1.37.2", "v1.36.3"], "a"), section("a", &["v1.35.4"], "a")];
    expect(&[&moved[0], &moved[1]], &["zero/one 1.36"])
}

fn text_of(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// `ci/resolve` adds the newest release again, and writes the committed files.
fn newest_release_resolves() -> Result<(), Failed> {
    let version = build::version(build::Artifact::Host, Release::NEWEST).ok_or("no version")?;
    let folder = tempfile::tempdir()?;
    let output = Command::new(support::repository().join("ci/resolve"))
        .arg(version.trim_start_matches('v'))
        .arg(folder.path())
        // The sums are compared with the committed ones, which were verified.
        .env("GONOSUMDB", "*")
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The grouping of requirements depends on earlier versions and has no meaning.
    let lines = |folder: &Path, file: &str| -> Result<BTreeSet<String>, Failed> {
        let text = fs::read_to_string(folder.join(file))?;
        let lines = text.lines().map(|line| line.trim().trim_start_matches("require ").into());
        Ok(lines.collect())
    };
    let committed = support::repository().join("upstream/versions");
    for kind in ["mod", "sum"] {
        let file = format!("v{}.{kind}", Release::NEWEST);
        assert_eq!(lines(folder.path(), &file)?, lines(&committed, &file)?, "{file}");
    }
    Ok(())
}

/// The modules of a control plane have the version of its release, except for the substitutes that
/// `ci/resolve` names.
fn control_planes() -> Result<(), Failed> {
    let script = fs::read_to_string(support::repository().join("ci/resolve"))?;
    for release in build::supported(build::Artifact::ControlPlane).map(Release::from) {
        let version = build::version(build::Artifact::ControlPlane, release).ok_or("no version")?;
        assert_eq!(build::version(build::Artifact::Host, release).as_ref(), Some(&version));
        let staging = version.replacen("v1.", "v0.", 1);
        let file = format!("upstream/controlplane/versions/v{release}.mod");
        let text = fs::read_to_string(support::repository().join(&file))?;
        let replaced: Vec<_> = text.lines().filter_map(|line| line.split_once(" => ")).collect();
        assert!(replaced.len() > 20, "{file}: {replaced:?}");
        for (module, by) in replaced {
            let module = module.trim().trim_start_matches("replace ");
            let Some(at) = by.strip_prefix(&format!("{module} ")) else { continue };
            let is_substitute = script.contains(&format!("[\"{module}@{staging}\"]={at}\n"));
            let is_expected = at == staging || !module.starts_with("k8s.io/");
            assert!(is_expected || is_substitute, "{file}: {module} has version {at}");
        }
    }
    Ok(())
}

/// A file in YAML, by its path in the repository.
fn yaml(path: &str) -> Result<Value, Failed> {
    let text = fs::read_to_string(support::repository().join(path))?;
    Ok(serde_yaml::from_str(&text)?)
}

/// A folder in which scripts run, with stand-in programs in `$PATH`.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Result<Machine, Failed> {
        let machine = Machine { folder: tempfile::tempdir()? };
        fs::create_dir_all(machine.path("path"))?;
        // The same command line, on an engine that does not require Go.
        let stand_in = format!(
            "engine=recorded\n[ \"$1\" = fuzz ] && engine=model\n\
             for it in \"$@\"; do\n  shift\n\
             case $it in upstream|embedded) it=$engine;; esac\n\
             set -- \"$@\" \"$it\"\ndone\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_kube-lockstep")
        );
        machine.program("path/kube-lockstep", &stand_in)?;
        // The jobs run control planes, which require the feature.
        let cargo = "case \"$*\" in 'test '*|'xtask record '*) exit 0;; *'--features clusters'*) ;; *) exit 1;; esac\n\
             mkdir -p target/release && cp path/kube-lockstep target/release/\n";
        machine.program("path/cargo", cargo)?;
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) -> Result<(), Failed> {
        fs::write(self.path(name), format!("#!/bin/sh\n{script}"))?;
        Ok(fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755))?)
    }

    /// Copies `ci/verify-recorded`, and writes the recorded traces of a fixture.
    fn copy_script_of_recording(&self, id: &str, traces: &str) -> Result<(), Failed> {
        fs::create_dir_all(self.path("ci"))?;
        let script = "ci/verify-recorded";
        fs::copy(support::repository().join(script), self.path(script))?;
        let path = self.path("suites/recorded").join(format!("{id}.trace"));
        fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        fs::write(path, traces)?;
        self.program("path/git", "exit 0\n")
    }

    fn run(&self, shell: &[&str], script: &str, env: &Variables) -> Result<Output, Failed> {
        let path = std::env::var("PATH")?;
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", script])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.path("path").display()))
            .env("KUBE_LOCKSTEP_CACHE", self.path("cache"))
            .env("GITHUB_OUTPUT", self.path("output"))
            .envs(env)
            .output()?;
        Ok(output)
    }
}

type Variables = BTreeMap<String, String>;

/// The scripts of a workflow job, each with its name and its variables. `values` replace the
/// expressions in the variables.
fn scripts(
    job: &Value,
    values: &[(&str, &str)],
) -> Result<Vec<(String, String, Variables)>, Failed> {
    let variables = |element: &Value| -> Result<Variables, Failed> {
        let all = element["env"].as_object().into_iter().flatten();
        let known = all.map(|(name, value)| {
            let text = value.as_str().ok_or("a text")?;
            let expression = text.strip_prefix("${{ ").and_then(|it| it.strip_suffix(" }}"));
            let Some(expression) = expression else { return Ok((name.clone(), text.to_owned())) };
            let value = values.iter().find(|(known, _)| *known == expression);
            let (_, value) = value.ok_or_else(|| format!("{expression} is not known"))?;
            Ok((name.clone(), (*value).to_owned()))
        });
        known.collect()
    };
    let steps = job["steps"].as_array().ok_or("steps")?;
    let mut found = Vec::new();
    for step in steps {
        let Some(script) = step["run"].as_str() else { continue };
        // An expression in a script could insert any text, even a command.
        assert!(!script.contains("${{"), "{script}");
        let mut env = variables(job)?;
        env.extend(variables(step)?);
        found.push((step["name"].as_str().ok_or("a name")?.to_owned(), script.to_owned(), env));
    }
    assert!(!found.is_empty(), "{job}");
    Ok(found)
}

/// The command with which the workflow's shell runs a step.
const BASH: &[&str] = &["bash", "--noprofile", "--norc", "-eo", "pipefail"];

/// The nightly workflow, whose jobs run on one machine.
struct NightlyWorkflow {
    workflow: Value,
    machine: Machine,
}

/// The steps of a job, each with its name.
type Steps = Vec<(String, Output)>;

impl NightlyWorkflow {
    fn new() -> Result<NightlyWorkflow, Failed> {
        let workflow = yaml(".github/workflows/nightly.yaml")?;
        assert_eq!(workflow["defaults"]["run"]["shell"], "bash");
        let machine = Machine::new()?;
        let traces = "scenario a/b 1\nengine upstream\nrelease v1.37.2 3\nbody 2\n{}\n";
        machine.copy_script_of_recording("a/b", traces)?;
        Ok(NightlyWorkflow { workflow, machine })
    }

    /// Runs all steps of a job, even after a failed step.
    fn run(&self, job: &str, values: &[(&str, &str)]) -> Result<Steps, Failed> {
        let scripts = scripts(&self.workflow["jobs"][job], values)?;
        let outputs = scripts.into_iter().map(|(name, script, env)| {
            let output = self.machine.run(BASH, &script, &env)?;
            Ok((name, output))
        });
        outputs.collect()
    }

    /// Runs the job that merges the results of releases.
    fn report(&self, releases: &[String], cluster: &str) -> Result<Steps, Failed> {
        let joined = |output: &str| format!("join(fromJSON(needs.plan.outputs.{output}), ',')");
        let (all, clusters) = (joined("releases"), joined("clusters"));
        self.run("report", &[(&all, &releases.join(",")), (&clusters, cluster)])
    }
}

fn assert_success(steps: Steps) {
    for (name, output) in steps {
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {printed}");
    }
}

/// The outputs of the job `plan`.
struct Plan {
    seed: String,
    releases: Vec<String>,
    clusters: Vec<String>,
}

impl Plan {
    fn read(nightly: &NightlyWorkflow) -> Result<Plan, Failed> {
        let text = fs::read_to_string(nightly.machine.path("output"))?;
        let output = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.ok_or_else(|| format!("no {name}: {text}"))
        };
        Ok(Plan {
            seed: output("seed")?.to_owned(),
            releases: serde_json::from_str(output("releases")?)?,
            clusters: serde_json::from_str(output("clusters")?)?,
        })
    }
}

fn nightly_workflow_runs() -> Result<(), Failed> {
    let nightly = NightlyWorkflow::new()?;
    assert_success(nightly.run("plan", &[("inputs.seed", "")])?);
    let Plan { seed, releases, clusters } = Plan::read(&nightly)?;
    assert!(seed.parse::<u64>().is_ok_and(|seed| seed > 0), "{seed}");
    assert_eq!(releases[0], Release::NEWEST.to_string());
    assert!(releases.len() >= 8, "{releases:?}");
    assert!(clusters.len() >= 2 && clusters.iter().all(|it| releases.contains(it)), "{clusters:?}");

    // Two releases are enough for a merge.
    let releases = &releases[..2];
    for release in releases {
        let values = [
            ("matrix.release", &**release),
            ("needs.plan.outputs.seed", &seed),
            ("inputs.ticks || '200000'", "300"),
        ];
        assert_success(nightly.run("release", &values)?);
    }
    assert_success(nightly.run("cluster", &[("matrix.release", &clusters[0])])?);
    assert_success(nightly.report(releases, &clusters[0])?);
    for file in ["run.json", "fuzz.json"] {
        let text = fs::read_to_string(nightly.machine.path(file))?;
        let last = text.lines().last().ok_or(file)?;
        assert!(last.contains(r#","summary":{"#) && !last.contains("\"missing\":["), "{last}");
    }
    for file in ["run.html", "run.xml"] {
        assert!(fs::read_to_string(nightly.machine.path(file))?.contains(&releases[1]), "{file}");
    }
    missing_results_fail(&nightly, releases, &clusters[0])
}

/// The steps of the action, on a machine where the repository is the action.
fn action_steps(machine: &Machine, values: &[(&str, &str)]) -> Result<Steps, Failed> {
    let action = yaml("action.yml")?;
    let defaults = action["inputs"].as_object().ok_or("inputs")?.iter().map(|(name, input)| {
        assert!(input["description"].is_string(), "{name} has no description");
        (format!("inputs.{name}"), input["default"].as_str().unwrap_or_default().to_owned())
    });
    let defaults: Vec<(String, String)> = defaults.collect();
    let root = support::repository().to_string_lossy().into_owned();
    let mut all = values.to_vec();
    all.push(("github.action_path", &root));
    // The first step chooses the version.
    let version = values.iter().find(|(name, _)| *name == "inputs.version");
    let version = version.map_or("source", |(_, version)| version);
    all.push(("steps.version.outputs.version", version));
    all.extend(defaults.iter().map(|(name, value)| (&**name, &**value)));
    let steps = action["runs"]["steps"].as_array().ok_or("steps")?;
    assert!(steps.iter().all(|step| step["run"].is_null() || step["shell"] == "bash"));
    let outputs = scripts(&action["runs"], &all)?.into_iter().map(|(name, script, mut env)| {
        env.insert("RUNNER_TEMP".to_owned(), machine.path("temp").to_string_lossy().into());
        env.insert("GITHUB_PATH".to_owned(), machine.path("paths").to_string_lossy().into());
        let summary = machine.path("summary.md").to_string_lossy().into();
        env.insert("GITHUB_STEP_SUMMARY".to_owned(), summary);
        env.insert("GITHUB_WORKSPACE".to_owned(), machine.path("").to_string_lossy().into());
        env.extend(values.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix("env.")?.to_owned(), (*value).to_owned()))
        }));
        let output = machine.run(BASH, &script, &env)?;
        Ok((name, output))
    });
    outputs.collect()
}

/// A scenario whose expectation is not met, in the folder `hpa` of a machine.
fn unmet_scenario(machine: &Machine) -> Result<(), Failed> {
    let fixture = support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml");
    let text = fs::read_to_string(fixture)?;
    let (text, _) = text.split_once("\nexpect:").ok_or("expectations")?;
    fs::create_dir_all(machine.path("hpa"))?;
    let expect = "expect:\n  - {tick: 1, replicas: 99}\n";
    Ok(fs::write(machine.path("hpa/mine.yaml"), format!("{text}\n{expect}"))?)
}

/// A machine on which cargo builds the program in a folder. Returns that folder.
fn machine_with_cargo() -> Result<(Machine, String), Failed> {
    let machine = Machine::new()?;
    let target = machine.path("target").to_string_lossy().into_owned();
    let cargo = format!(
        "[ \"$*\" = 'build --release --locked' ] && mkdir -p {target}/release && cp {} \
         {target}/release/kube-lockstep\n",
        machine.path("path/kube-lockstep").display()
    );
    machine.program("path/cargo", &cargo)?;
    Ok((machine, target))
}

/// With the input `gate`, the action checks a change.
fn action_gate() -> Result<(), Failed> {
    let (machine, target) = machine_with_cargo()?;
    for (folder, most) in [("old", "30"), ("new", "10")] {
        fs::create_dir_all(machine.path(folder))?;
        for name in ["hpas.yaml", "deployments.yaml"] {
            let from = support::repository().join("examples/shop").join(name);
            let maximum = format!("maxReplicas: {most}");
            let text = fs::read_to_string(from)?.replace("maxReplicas: 30", &maximum);
            fs::write(machine.path(folder).join(name), text)?;
        }
    }
    let values = [
        ("env.CARGO_TARGET_DIR", &*target),
        ("inputs.gate", "--base ./old --head ./new\n--load checkout:cpu=total:12 --until 1h"),
        ("inputs.reports", "reports"),
    ];
    let steps = action_steps(&machine, &values)?;
    let (_, run) = steps.last().ok_or("steps")?;
    let shown = text_of(&run.stdout) + &text_of(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{shown}");
    let annotation = "::error file=new/hpas.yaml,line=14,title=HPA shop/checkout%3A over budget";
    assert!(shown.contains(annotation), "{shown}");
    for file in ["reports/report.html", "reports/results.xml", "reports/results.md", "summary.md"] {
        let text = fs::read_to_string(machine.path(file))?;
        assert!(text.contains("30 → 10"), "{file}: {text}");
    }
    Ok(())
}

fn action() -> Result<(), Failed> {
    // The installation builds the program in the folder of the action.
    let (machine, target) = machine_with_cargo()?;
    unmet_scenario(&machine)?;
    let values = [
        ("env.CARGO_TARGET_DIR", &*target),
        ("inputs.scenarios", "hpa"),
        ("inputs.engine", "model"),
        ("inputs.reports", "reports"),
    ];
    let steps = action_steps(&machine, &values)?;
    let [(_, version), (_, install), (_, run)] = steps.as_slice() else {
        return Err("three steps".into());
    };
    assert!(version.status.success(), "{}", text_of(&version.stderr));
    assert!(install.status.success(), "{}", text_of(&install.stderr));
    assert!(text_of(&install.stdout).starts_with("kube-lockstep "));
    let bin = fs::read_to_string(machine.path("paths"))?;
    assert!(Path::new(bin.trim()).join("kube-lockstep").exists(), "{bin}");
    let shown = text_of(&run.stdout) + &text_of(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{shown}");
    assert!(shown.contains("::error file=hpa/mine.yaml,line="), "{shown}");
    let outputs = fs::read_to_string(machine.path("output"))?;
    assert!(outputs.starts_with("version=source\n"), "{outputs}");
    assert!(outputs.ends_with("\nexit-code=1\n"), "{outputs}");
    for file in ["reports/report.html", "reports/results.xml", "reports/results.md", "summary.md"] {
        let text = fs::read_to_string(machine.path(file))?;
        assert!(text.contains("expected 99"), "{file}: {text}");
    }
    Ok(())
}

/// The version is that of the release by which a workflow names the action.
fn action_version() -> Result<(), Failed> {
    let script = support::repository().join("ci/action/version");
    let outputs = |folder: &str, version: &str, engine: &str| -> Result<String, Failed> {
        let file = tempfile::NamedTempFile::new()?;
        let output = Command::new(&script)
            .env("VERSION", version)
            .env("ENGINE", engine)
            .env("RELEASE", "1.36,1.37")
            .env("ACTION", format!("/runner/_actions/kube-lockstep/kube-lockstep/{folder}"))
            .env("GITHUB_OUTPUT", file.path())
            .output()?;
        assert!(output.status.success(), "{}", text_of(&output.stderr));
        Ok(fs::read_to_string(file.path())?)
    };
    let of = |folder: &str, version: &str| outputs(folder, version, "upstream");
    let released = "version=v0.1.0\nprogram=v0.1.0\nengine=upstream-1.36_1.37-v0.1.0\n".to_owned();
    assert_eq!(of("v0.1.0", "")?, released);
    assert_eq!(of("main", "v0.1.0")?, released);
    assert!(of("v1.0.0-rc.1", "")?.starts_with("version=v1.0.0-rc.1\n"));
    let source = of("main", "")?;
    assert!(source.starts_with("version=source\nprogram="), "{source}");
    for folder in ["v0", "8d0a6f7a1f2b3c4d5e6f708192a3b4c5d6e7f809"] {
        assert_eq!(of(folder, "")?, source, "{folder}");
    }
    assert_eq!(of("v0.1.0", "source")?, source);
    assert!(!source.contains(','), "a key of a cache has no commas: {source}");
    let clusters = outputs("main", "", "embedded")?;
    assert!(clusters.contains("\nprogram=clusters-"), "another build: {clusters}");
    Ok(())
}

/// Packs the program of a machine as a release of a target, in a folder that stands in for the web.
fn pack(machine: &Machine, target: &str, program: &str) -> Result<PathBuf, Failed> {
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("kube-lockstep-{version}-{target}");
    let pack = format!(
        "mkdir -p web/v{version} {name}\ncp path/kube-lockstep {name}/{program}\n\
         tar -czf web/v{version}/{name}.tar.gz {name}\ncd web/v{version}\n\
         if command -v sha256sum; then sha256sum {name}.tar.gz; else shasum -a 256 \
         {name}.tar.gz; fi | tail -n 1 > {name}.tar.gz.sha256\n"
    );
    let packed = machine.run(BASH, &pack, &Variables::new())?;
    assert!(packed.status.success(), "{}", text_of(&packed.stderr));
    Ok(machine.path(&format!("web/v{version}/{name}.tar.gz.sha256")))
}

/// Runs the step of the action that installs the packed release.
fn install(machine: &Machine) -> Result<Output, Failed> {
    let base = format!("file://{}", machine.path("web").display());
    let tag = format!("v{}", env!("CARGO_PKG_VERSION"));
    let values = [("env.BASE", &*base), ("inputs.version", &tag), ("inputs.engine", "model")];
    let mut steps = action_steps(machine, &values)?.into_iter();
    Ok(steps.find(|(name, _)| name == "Install").ok_or("a step")?.1)
}

/// A release in a folder stands in for the release on the web; its checksum must match.
fn action_installs() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let target = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", arch) => format!("{arch}-apple-darwin"),
        (_, arch) => format!("{arch}-unknown-linux-musl"),
    };
    let sum = pack(&machine, &target, "kube-lockstep")?;
    unmet_scenario(&machine)?;
    let output = install(&machine)?;
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text_of(&output.stdout).trim(), format!("kube-lockstep {version}"));
    let right = fs::read_to_string(&sum)?;
    let (first, rest) = right.split_at(1);
    fs::write(&sum, format!("{}{rest}", if first == "0" { "1" } else { "0" }))?;
    let output = install(&machine)?;
    assert!(!output.status.success(), "a wrong checksum is an error");
    fs::remove_file(&sum)?;
    let output = install(&machine)?;
    assert!(text_of(&output.stdout).contains("::error::release v"), "{output:?}");
    Ok(())
}

/// Programs stand in for those of Git Bash.
fn action_installs_on_windows() -> Result<(), Failed> {
    let machine = Machine::new()?;
    machine.program("path/uname", "case $1 in -s) echo MINGW64_NT-10.0;; *) echo x86_64;; esac")?;
    machine.program("path/cygpath", "[ \"$1\" = --unix ] || printf windows:\necho \"$2\"\n")?;
    pack(&machine, "x86_64-pc-windows-msvc", "kube-lockstep.exe")?;
    unmet_scenario(&machine)?;
    let output = install(&machine)?;
    assert!(output.status.success(), "{}{}", text_of(&output.stdout), text_of(&output.stderr));
    let path = fs::read_to_string(machine.path("paths"))?;
    let bin = path.trim().strip_prefix("windows:").ok_or("a path of Windows")?;
    assert!(Path::new(bin).join("kube-lockstep.exe").exists(), "{bin}");
    Ok(())
}

/// `ci/release/notes` prints the section of a version, and `ci/release/tag` requires one with a date.
fn release_notes() -> Result<(), Failed> {
    let machine = Machine::new()?;
    fs::create_dir_all(machine.path("ci/release"))?;
    for script in ["ci/release/notes", "ci/release/tag", "ci/release/version"] {
        fs::copy(support::repository().join(script), machine.path(script))?;
    }
    fs::write(machine.path("Cargo.toml"), "[package]\nversion = \"0.2.0\"\n")?;
    let text = |date: &str| {
        format!(
            "# Changelog\n\n## 0.2.0{date}\n\n- New.\n\n### Interfaces\n\n- None.\n\n\
             ## 0.1.0 (2026-01-31)\n\n- First.\n"
        )
    };
    let run = |script: &str| machine.run(BASH, script, &Variables::new());
    fs::write(machine.path("CHANGELOG.md"), text(" (2026-02-28)"))?;
    let notes = run("ci/release/notes")?;
    assert_eq!(text_of(&notes.stdout), "- New.\n\n### Interfaces\n\n- None.\n");
    assert_eq!(text_of(&run("ci/release/notes 0.1.0")?.stdout), "- First.\n");
    assert!(run("ci/release/tag v0.2.0")?.status.success());
    let fails = |script: &str, expected: &str| -> Result<(), Failed> {
        let output = run(script)?;
        assert_eq!(output.status.code(), Some(1), "{script}");
        assert!(text_of(&output.stderr).contains(expected), "{}", text_of(&output.stderr));
        Ok(())
    };
    fails("ci/release/tag v0.1.0", "the tag is v0.1.0, but Cargo.toml has version 0.2.0")?;
    fails("ci/release/notes 0.3.0", "CHANGELOG.md has no section '## 0.3.0'")?;
    fs::write(machine.path("CHANGELOG.md"), text(" (not released yet)"))?;
    fails("ci/release/tag v0.2.0", "has no date")?;
    // The version of this commit has a section, which says how interfaces change.
    let script = support::repository().join("ci/release/notes");
    let notes = Command::new(script).output()?;
    assert!(notes.status.success(), "{}", text_of(&notes.stderr));
    assert!(text_of(&notes.stdout).contains("\n### Interfaces\n"), "{}", text_of(&notes.stdout));
    Ok(())
}

/// Without root, the check uses a user namespace, or sudo where these are not permitted. A
/// program for another system than Linux runs in a temporary folder.
fn release_check() -> Result<(), Failed> {
    let check = |user: &str, unshare: &str| -> Result<String, Failed> {
        let machine = Machine::new()?;
        machine.program("path/id", &format!("echo {user}"))?;
        machine.program("path/unshare", unshare)?;
        for program in ["chroot", "sudo"] {
            machine.program(&format!("path/{program}"), &format!("echo {program} \"$@\""))?;
        }
        let target = "x86_64-unknown-linux-musl";
        let shown = run_check(&machine, target)?;
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains(" /kube-lockstep predict scenario.yaml\n"), "{shown}");
        Ok(shown)
    };
    let (permitted, forbidden) = ("[ \"$2\" = true ] || echo unshare \"$@\"", "exit 1");
    assert!(check("0", forbidden)?.starts_with("chroot /"));
    assert!(check("1000", permitted)?.starts_with("unshare --map-root-user chroot /"));
    assert!(check("1000", forbidden)?.starts_with("sudo chroot --userspec=1000:1000 /"));
    let machine = Machine::new()?;
    machine.program("path/kube-lockstep", "ls scenario.yaml && echo \"$@\"")?;
    let shown = run_check(&machine, "aarch64-apple-darwin")?;
    // `ls` and the arguments, for each of the two runs.
    let expected = "scenario.yaml\npredict scenario.yaml\nrun --engine recorded tolerance\n";
    assert_eq!(shown, expected);
    Ok(())
}

/// Checks the packed program for a target, and returns the output.
fn run_check(machine: &Machine, target: &str) -> Result<String, Failed> {
    let archive = pack(machine, target, "kube-lockstep")?.with_extension("");
    let script = support::repository().join("ci/release/check");
    let script = format!("{} {}", script.display(), archive.display());
    let output = machine.run(BASH, &script, &Variables::new())?;
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    Ok(text_of(&output.stdout))
}

/// A program stands in for Docker that writes down its arguments and the files of the context.
fn release_images() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let docker = "echo \"$@\" >> calls\nfor it in \"$@\"; do\n\
                  [ \"$last\" != --metadata-file ] || \
                  echo '{\"containerimage.digest\": \"sha256:12\"}' > \"$it\"\n\
                  last=$it\ndone\n(cd \"$last\" && find . -type f | sort) > files\n";
    let calls = machine.path("calls").to_string_lossy().into_owned();
    let files = machine.path("files").to_string_lossy().into_owned();
    machine.program(
        "path/docker",
        &docker
            .replace(">> calls", &format!(">> {calls}"))
            .replace("> files", &format!("> {files}")),
    )?;
    for target in ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"] {
        pack(&machine, target, "kube-lockstep")?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let script = support::repository().join("ci/release/images");
    let script = format!("{} web/v{version}", script.display());
    let pushed = machine.run(BASH, &format!("{script} example.com/it"), &Variables::new())?;
    assert!(pushed.status.success(), "{}", text_of(&pushed.stderr));
    assert_eq!(text_of(&pushed.stdout), "model=sha256:12\nupstream=sha256:12\n");
    let calls = fs::read_to_string(&calls)?;
    let calls: Vec<&str> = calls.lines().collect();
    let tags = |call: &str| -> Vec<String> {
        let words = call.split(' ').filter_map(|word| word.strip_prefix("example.com/it:"));
        words.map(str::to_owned).collect()
    };
    assert_eq!(tags(calls[0]), [&format!("{version}-model"), "model", "latest"]);
    assert_eq!(tags(calls[1]), [&format!("{version}-upstream"), "upstream"]);
    for call in calls {
        assert!(call.contains("--platform linux/amd64,linux/arm64") && call.contains("--push"));
    }
    let files = fs::read_to_string(&files)?;
    for file in ["ca-certificates.crt", "linux-amd64/kube-lockstep", "linux-arm64/kube-lockstep"] {
        assert!(files.contains(&format!("./{file}\n")), "{file}: {files}");
    }
    Ok(())
}

/// The checksums of the archives are those of their files.
fn krew() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let version = env!("CARGO_PKG_VERSION");
    let workflow = yaml(".github/workflows/release.yaml")?;
    let matrix = &workflow["jobs"]["build"]["strategy"]["matrix"]["include"];
    let targets: Vec<&str> =
        matrix.as_array().ok_or("targets")?.iter().filter_map(|it| it["target"].as_str()).collect();
    assert!(targets.len() >= 4, "{targets:?}");
    for (index, target) in targets.iter().enumerate() {
        let name = format!("kube-lockstep-{version}-{target}.tar.gz");
        let sum = format!("{index}{:063}  {name}\n", 0);
        fs::write(folder.path().join(format!("{name}.sha256")), sum)?;
    }
    let script = support::repository().join("ci/release/krew");
    let output = Command::new(script).arg(folder.path()).output()?;
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    let manifest: Value = serde_yaml::from_str(&text_of(&output.stdout))?;
    assert_eq!(manifest["metadata"]["name"], "lockstep");
    assert_eq!(manifest["spec"]["version"], format!("v{version}"));
    let platforms = manifest["spec"]["platforms"].as_array().ok_or("platforms")?;
    assert_eq!(platforms.len(), targets.len());
    for platform in platforms {
        let uri = platform["uri"].as_str().ok_or("a URI")?;
        let index = targets.iter().position(|target| uri.ends_with(&format!("-{target}.tar.gz")));
        let index = index.ok_or_else(|| format!("{uri} is not built"))?;
        assert_eq!(platform["sha256"], format!("{index}{:063}", 0), "{uri}");
        let windows = platform["selector"]["matchLabels"]["os"] == "windows";
        let program = if windows { "kubectl-lockstep.exe" } else { "kubectl-lockstep" };
        assert_eq!(platform["bin"], program);
    }
    Ok(())
}

/// Each script that a workflow names exists, and each workflow limits its permissions and times.
fn workflows() -> Result<(), Failed> {
    let folder = support::repository().join(".github/workflows");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let workflow = yaml(&format!(".github/workflows/{name}"))?;
        assert_eq!(workflow["permissions"]["contents"], "read", "{name}");
        for (job, content) in workflow["jobs"].as_object().ok_or("jobs")? {
            assert!(content["timeout-minutes"].is_u64(), "{name}: {job} has no time limit");
            for step in content["steps"].as_array().ok_or("steps")? {
                let script = step["run"].as_str().unwrap_or_default();
                assert!(!script.contains("${{"), "{name}: {script}");
                for word in script.split(|c: char| !(c.is_alphanumeric() || "/-.".contains(c))) {
                    let exists = support::repository().join(word).exists();
                    assert!(exists || !word.starts_with("ci/"), "{name}: {word} is missing");
                }
            }
        }
        names.insert(name);
    }
    let expected = ["nightly.yaml", "pull-request.yaml", "release.yaml", "site.yaml"];
    assert_eq!(names, expected.map(str::to_owned).into());
    Ok(())
}

/// The workflow for pull requests runs each step of `ci/run`. The documentation site has its own
/// job, which calls `ci/site`.
fn steps_have_jobs() -> Result<(), Failed> {
    let script = fs::read_to_string(support::repository().join("ci/run"))?;
    let (_, usage) = script.split_once("in this order:\n").ok_or("the steps")?;
    let (usage, _) = usage.split_once("\n\"").ok_or("the end of the steps")?;
    let indented = usage.lines().filter_map(|line| line.strip_prefix("  "));
    let words = indented.filter_map(|line| line.split_once(' ')).map(|(word, _)| word);
    let steps: BTreeSet<&str> = words.filter(|word| !word.is_empty()).collect();
    assert!(steps.len() > 10, "{steps:?}");
    let workflow = yaml(".github/workflows/pull-request.yaml")?;
    let matrix = &workflow["jobs"]["checks"]["strategy"]["matrix"]["steps"];
    let jobs = matrix.as_array().ok_or("jobs")?.iter().filter_map(Value::as_str);
    let run: BTreeSet<&str> = jobs.flat_map(|job| job.split(' ')).chain(["site"]).collect();
    assert_eq!(run, steps);
    Ok(())
}

/// The report fails if a job left no results or was killed.
fn missing_results_fail(
    nightly: &NightlyWorkflow,
    releases: &[String],
    cluster: &str,
) -> Result<(), Failed> {
    fs::remove_file(nightly.machine.path(&format!("results/run-{}.json", releases[0])))?;
    fs::write(nightly.machine.path(&format!("results/fuzz-{}.json", releases[1])), "")?;
    let steps = nightly.report(releases, cluster)?;
    let assert_failed = |index: usize, expected: &str| {
        let (name, output) = &steps[index];
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{name}: {text}");
        assert!(text.contains(expected), "{name}: {expected}: {text}");
    };
    assert_failed(0, &format!("missing  release {}: there are no results\n", releases[0]));
    let cut = format!("missing  results/fuzz-{}.json: the run is incomplete\n", releases[1]);
    assert_failed(2, &cut);
    assert_failed(2, &format!("missing  release {}: there are no results\n", releases[1]));
    Ok(())
}

/// Deserializing drops fields that the API's types do not have.
#[cfg(feature = "e2e")]
fn manifest() -> Result<(), Failed> {
    let written = yaml("ci/job.yaml")?;
    let job: Job = serde_json::from_value(written.clone())?;
    let read = serde_json::to_value(&job)?;
    assert_eq!(read, written, "a field is unknown or misspelled");
    let spec = job.spec.ok_or("a spec")?;
    assert_eq!(spec.completion_mode.as_deref(), Some("Indexed"));
    assert_eq!(spec.template.spec.and_then(|it| it.restart_policy).as_deref(), Some("Never"));
    // The API server requires a backoff limit per index for the action `FailIndex`.
    let rules = spec.pod_failure_policy.ok_or("a policy")?.rules;
    assert!(rules.iter().any(|rule| rule.action == "FailIndex"));
    assert!(spec.backoff_limit_per_index.is_some() && spec.max_failed_indexes.is_some());
    Ok(())
}

/// The API's types come with the feature `e2e`.
#[cfg(not(feature = "e2e"))]
fn manifest() -> Result<(), Failed> {
    Err("it requires --features e2e".into())
}

fn pods() -> Result<(), Failed> {
    let job = yaml("ci/job.yaml")?;
    let spec = &job["spec"];
    let pod = &spec["template"]["spec"];
    let [container] = pod["containers"].as_array().ok_or("containers")?.as_slice() else {
        return Err("one container".into());
    };
    let variable = |name: &str| {
        let found = container["env"].as_array()?.iter().find(|it| it["name"] == name)?;
        found["value"].as_str()
    };
    let count = spec["completions"].as_u64().ok_or("completions")?;
    assert_eq!(spec["parallelism"], count);
    assert_eq!(variable("SHARDS"), Some(&*count.to_string()));
    let machine = Machine::new()?;
    assert_eq!(container["command"], serde_json::json!(["/bin/sh", "-c"]));
    let [Value::String(script)] = container["args"].as_array().ok_or("args")?.as_slice() else {
        return Err("one script".into());
    };
    let errors = machine.path("termination-log");
    let script = script.replace("/dev/termination-log", &errors.to_string_lossy());
    let mut logs = Vec::new();
    for index in 0..count {
        let env = BTreeMap::from([
            ("SHARDS".to_owned(), count.to_string()),
            ("JOB_COMPLETION_INDEX".to_owned(), index.to_string()),
        ]);
        let output = machine.run(&["/bin/sh"], &script, &env)?;
        assert!(output.status.success(), "{index}: {}", fs::read_to_string(&errors)?);
        assert!(output.stderr.is_empty(), "the log must contain only results");
        let log = machine.path(&format!("{index}.json"));
        fs::write(&log, output.stdout)?;
        logs.push(log);
    }
    let merge = |logs: &[PathBuf]| -> Result<(Option<i32>, String), Failed> {
        let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
            .args(["report", "merge", "--release", "all"])
            .args(logs)
            .output()?;
        Ok((output.status.code(), String::from_utf8(output.stdout)?))
    };
    let (code, printed) = merge(&logs)?;
    assert_eq!(code, Some(0), "{printed}");
    let runs = support::fixtures().len() * Release::supported().count()
        + support::vpa_fixtures().len() * VpaRelease::supported().count();
    let last = printed.lines().last().unwrap_or_default().replace(',', "");
    assert!(last.starts_with(&format!("{runs} scenarios on recorded ")), "{last}");
    let (code, printed) = merge(&logs[1..])?;
    assert_eq!(code, Some(3), "{printed}");
    let missing = format!("missing  shard 1/{count} of the run on recorded ");
    assert!(printed.contains(&missing), "{printed}");
    Ok(())
}
