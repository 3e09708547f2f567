//! `kube-lockstep compare`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use super::args::{self, Format, Source};
use super::exit;
use super::failure::Failure;
use super::fixtures::{Fixture, Fixtures};
use super::manifests::{self, ManifestArgs};
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use super::run::parse_each;
use crate::model::rules::{Release, Releases};
use crate::report::comparison::{ComparisonRow, Figures, columns_help, comparison};
use crate::report::html::{Compared, Comparison};
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
#[command(after_help = format!("{}\n\n{}\n\n{HELP}", columns_help(100), manifests::LOAD_HELP))]
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
    /// Also write the comparison as a page: the figures, the replicas of all settings in one chart,
    /// and the timeline of each setting
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
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
    /// The fields as they were given: PATH=VALUE,…
    text: String,
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
        let text = fields.to_owned();
        let fields = fields.split(',').map(field).collect::<Result<_, String>>()?;
        Ok(Setting { name: name.to_owned(), text, fields })
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
    let subjects = subjects(args)?;
    let file = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let mut predictions =
        Predictions { rows: Vec::new(), page: file.is_some().then(Comparison::default) };
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
        let scenario = &subject.scenario;
        predictions.add(&name("as it is"), &scenario.path, scenario, args)?;
        for setting in args.set.iter().filter(|setting| setting.is_for(&subject.scenario)) {
            let scenario = subject.with(setting)?;
            predictions.add(&name(&setting.name), &setting.text, &scenario, args)?;
        }
    }
    let Predictions { rows, page } = predictions;
    if let (Some(mut file), Some(page)) = (file, page) {
        file.write_all(page.page(&rows).as_bytes())?;
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
        let scenarios = args.manifests.hpa_scenarios(args.hpa.as_deref())?;
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

/// The predictions of all settings.
struct Predictions {
    rows: Vec<ComparisonRow>,
    /// The page to write, if any.
    page: Option<Comparison>,
}

impl Predictions {
    /// Adds a scenario: one row for each release and run.
    fn add(
        &mut self,
        setting: &str,
        about: &str,
        scenario: &Arc<Scenario>,
        args: &Args,
    ) -> anyhow::Result<()> {
        let releases = args.release.clone().unwrap_or_else(|| Releases::only(Release::NEWEST));
        for release in releases.iter() {
            if let Some(why) = scenario.unsupported_on(release) {
                return Err(Failure::usage(format!("{setting}: {why}")).into());
            }
            for number in 0..args.runs {
                let scenario = of_run(scenario, setting, number)?;
                let run = free_run(&scenario, release);
                if let Some(why) = &run.undetermined {
                    anyhow::bail!("{setting}: {why}");
                }
                if let Some(page) = self.page.as_mut().filter(|_| number == 0) {
                    page.add(Compared { setting, about, scenario: &scenario, run: &run });
                }
                self.rows.push(ComparisonRow {
                    setting: setting.to_owned(),
                    release: release.to_string(),
                    run: (args.runs > 1).then_some(number + 1),
                    figures: Figures::of(&scenario, &run),
                });
            }
        }
        Ok(())
    }
}
