//! `kube-lockstep compare`.

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use super::args::{self, Format, Source};
use super::exit;
use super::failure::Failure;
use super::fixtures::{Fixture, Fixtures};
use super::manifests::{self, ManifestArgs};
use super::output::{columns, show, unless_closed};
use super::run::parse_each;
use crate::model::rules::{Release, Releases};
use crate::report::comparison::{COLUMNS_HELP, ComparisonRow, Figures, comparison};
use crate::report::json;
use crate::run::free_run;
use crate::scenario::{self, Scenario};

const HELP: &str = "\
Exit codes:
  0    the settings are compared
  2    an invalid command line, scenario or manifest, or a value that the prediction requires is
       missing
  3    a scenario can't be run to its end, because its outcome is not deterministic";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{COLUMNS_HELP}\n\n{}\n\n{HELP}", manifests::LOAD_HELP))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["names", "filename"]))]
pub(super) struct Args {
    /// Scenarios: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE")]
    names: Vec<String>,
    /// Another setting: fields of the HPA, separated by commas, each as PATH=VALUE; after a name
    /// and a colon, if it should have one. For example
    /// fast:spec.behavior.scaleDown.stabilizationWindowSeconds=60,spec.maxReplicas=20. If several
    /// HPAs are predicted together, the path begins with the name of one: web/spec.maxReplicas=20
    #[arg(long, value_name = "[NAME:]PATH=VALUE,…")]
    set: Vec<Setting>,
    /// Repeat each prediction with different noise of the loads, and show the mean, the least and
    /// the most of each figure. The first run has the seeds of the loads, the second one the next
    /// seeds, and so on
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The Kubernetes releases: one, several (`1.30,1.35-1.37`), or `all` [default: the newest]
    #[arg(long, value_name = "RELEASES", value_parser = args::releases)]
    release: Option<Releases>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    source: Source,
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Option<String>,
    #[command(flatten)]
    manifests: ManifestArgs,
}

/// Changes of an HPA.
#[derive(Clone, PartialEq, Debug)]
struct Setting {
    name: String,
    fields: Vec<Field>,
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
        let field = |part: &str| {
            let (path, value) = part.split_once('=').ok_or_else(|| {
                format!("{part}: expected PATH=VALUE, for example spec.maxReplicas=20")
            })?;
            let (hpa, path) = match path.split_once('/') {
                Some((hpa, path)) if path.starts_with("spec.") => (Some(hpa.to_owned()), path),
                _ => (None, path),
            };
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            if path.first().is_none_or(|first| first != "spec") || path.iter().any(String::is_empty)
            {
                return Err(format!("{part}: the path begins with `spec.`"));
            }
            // Numbers, booleans and JSON; all other values are text.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok(Field { hpa, path, value })
        };
        let fields = fields.split(',').map(field).collect::<Result<_, String>>()?;
        Ok(Setting { name: name.to_owned(), fields })
    }
}

impl Setting {
    /// Returns true if the scenario contains the HPAs that the setting names, if it names any.
    fn is_for(&self, scenario: &Scenario) -> bool {
        let mut named = self.fields.iter().filter_map(|field| field.hpa.as_deref());
        named.all(|name| scenario.hpas.iter().any(|hpa| *hpa.name == *name))
    }

    /// Changes the HPAs of a scenario.
    fn apply(&self, tree: &mut Value) -> Result<(), String> {
        for Field { hpa, path, value } in &self.fields {
            let mut at = find_hpa(tree, hpa.as_deref())?;
            for part in path {
                at = match (at, part.parse::<usize>()) {
                    (Value::Array(items), Ok(index)) => items.get_mut(index).ok_or_else(|| {
                        format!("{}: there is no element {index}", path.join("."))
                    })?,
                    (Value::Object(fields), _) => fields.entry(part.clone()).or_insert(Value::Null),
                    (other @ Value::Null, _) => {
                        *other = Value::Object(serde_json::Map::new());
                        &mut other[part.as_str()]
                    }
                    _ => return Err(format!("{}: `{part}` can't be set there", path.join("."))),
                };
            }
            *at = value.clone();
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

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let mut rows = Vec::new();
    let subjects = subjects(args)?;
    let several = subjects.len() > 1;
    for setting in &args.set {
        if !subjects.iter().any(|subject| setting.is_for(&subject.scenario)) {
            let hpas = subjects.iter().flat_map(|subject| &subject.scenario.hpas);
            let names: Vec<&str> = hpas.map(|hpa| &*hpa.name).collect();
            let what = format!("--set {}: no such HPA", setting.name);
            let hint = format!("the HPAs are {}", names.join(", "));
            return Err(Failure::usage(what).hint(hint).into());
        }
    }
    for subject in &subjects {
        let name = |setting: &str| match several {
            true if args.set.is_empty() => subject.scenario.id.clone(),
            true => format!("{}: {setting}", subject.scenario.id),
            false => setting.to_owned(),
        };
        add(&mut rows, name("as it is"), &subject.scenario, args)?;
        for setting in args.set.iter().filter(|setting| setting.is_for(&subject.scenario)) {
            let scenario = subject.with(setting)?;
            add(&mut rows, name(&setting.name), &scenario, args)?;
        }
    }
    match args.format {
        Format::Text => show(&comparison(&rows, columns()))?,
        Format::Json => {
            let mut out = io::stdout();
            for row in &rows {
                unless_closed(json::line(&mut out, row))?;
            }
        }
    }
    Ok(exit::CONFORMS)
}

/// Reads a file that a scenario names.
type ReadFile = Box<dyn Fn(&str) -> Result<String, String>>;

/// A scenario, with a way to read the files that it names.
struct Subject {
    scenario: Arc<Scenario>,
    read: ReadFile,
}

impl Subject {
    /// The scenario with another setting.
    fn with(&self, setting: &Setting) -> Result<Arc<Scenario>, Failure> {
        let invalid = |what: String| Failure::usage(format!("--set {}: {what}", setting.name));
        let mut tree = scenario::to_tree(&self.scenario);
        setting.apply(&mut tree).map_err(invalid)?;
        let text = scenario::tree_to_yaml(&tree);
        let changed =
            scenario::parse(&self.scenario.path, &text, &*self.read).map_err(|error| {
                let problem = error.problems.first();
                let hint = problem.and_then(|problem| problem.hint.clone());
                let failure = invalid(problem.map(|it| it.what.clone()).unwrap_or_default());
                Failure { hint, ..failure }
            })?;
        Ok(Arc::new(Scenario { id: self.scenario.id.clone(), ..changed }))
    }
}

fn subjects(args: &Args) -> Result<Vec<Subject>, Failure> {
    if !args.manifests.filename.is_empty() {
        let scenarios = args.manifests.scenarios(args.hpa.as_deref())?;
        let subject = |scenario| Subject { scenario, read: Box::new(manifests::read_load) };
        return Ok(scenarios.into_iter().map(subject).collect());
    }
    args.manifests.check_unused()?;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let found = fixtures.in_order(&args.names)?;
    // All errors are reported first.
    parse_each(&found)?;
    let subject = |fixture: Fixture| {
        let scenario = fixture.parse()?;
        Ok(Subject { scenario, read: Box::new(move |path| fixture.read_beside(path)) })
    };
    found.into_iter().map(subject).collect()
}

/// The scenario with the noise of a repeated run, which is counted from 0.
fn of_run(scenario: &Arc<Scenario>, name: &str, run: u32) -> Result<Arc<Scenario>, Failure> {
    if run == 0 {
        return Ok(scenario.clone());
    }
    let varied = scenario::with_noise_of_run(scenario, run);
    varied.map(Arc::new).ok_or_else(|| {
        let what = format!("{name}: no load has noise, so all runs are the same");
        Failure::usage(what).hint("add noise, for example --load 'cpu=total:noise(10%,8)'")
    })
}

/// Adds the rows of a scenario, one for each release.
fn add(
    rows: &mut Vec<ComparisonRow>,
    name: String,
    scenario: &Arc<Scenario>,
    args: &Args,
) -> anyhow::Result<()> {
    let releases = args.release.clone().unwrap_or_else(|| Releases::only(Release::NEWEST));
    for release in releases.iter() {
        if let Some(why) = scenario.unsupported_on(release) {
            return Err(Failure::usage(format!("{name}: {why}")).into());
        }
        for number in 0..args.runs {
            let scenario = of_run(scenario, &name, number)?;
            let run = free_run(&scenario, release);
            if let Some(why) = &run.undetermined {
                anyhow::bail!("{name}: {why}");
            }
            let figures = Figures::of(&scenario, &run);
            let (setting, release) = (name.clone(), release.to_string());
            let run = (args.runs > 1).then_some(number + 1);
            rows.push(ComparisonRow { setting, release, run, figures });
        }
    }
    Ok(())
}
