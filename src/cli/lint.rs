//! `kube-lockstep lint`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use anstream::adapter::strip_str;
use clap::ValueEnum;
use serde::Serialize;

use super::args::OneRelease;
use super::exit;
use super::failure::Failure;
use super::feature_gates;
use super::manifests::{invalid_manifests, read_manifests};
use super::output::{Stdout, columns, show, tell, unless_closed};
use super::reports::{ReportFile, folders};
use kube_autoscaler_models::flags::GateSetting;
use kube_lockstep_lint::{
    Evidence, Finding, Level, ObjectName, Options, RULES, Rule, check, sarif,
};
use kube_lockstep_manifests::{Load, Manifests, ValidHpa};
use kube_lockstep_report::github::{Annotation, AnnotationKind};
use kube_lockstep_report::outcome::note_text;
use kube_lockstep_report::style::{BAD, DIM, STRONG, WARN, paint};
use kube_lockstep_report::{counted, json, wrapped};
use kube_lockstep_scenario::error::similar;
use kube_lockstep_scenario::{Diagnostic, Hint};

const HELP: &str = "\
Exit codes:
  0    no findings, or only findings below --fail-on; or the rules are listed
  1    a finding of the level --fail-on or higher
  2    the command line or a manifest is invalid, or there is no HPA and no VPA
  3    an output can't be written";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Manifests of HPAs, VPAs and workloads: files, folders, or `-` for standard input; as for
    /// `kubectl apply`, or as `kubectl get -o yaml` prints them
    #[arg(short = 'f', long, value_name = "FILE", required_unless_present = "list")]
    filename: Vec<PathBuf>,
    /// Also read the subfolders of the folders that --filename names
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
    #[command(flatten)]
    release: OneRelease,
    /// Feature gates that differ from the defaults of the release: GATE=true or GATE=false, or for
    /// one component kube-apiserver:GATE=true or kube-controller-manager:GATE=true
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    #[arg(value_parser = feature_gates::setting)]
    feature_gates: Vec<GateSetting>,
    /// The load of a metric, for rules that depend on it: as for `kube-lockstep predict`
    #[arg(long, value_name = "LOAD")]
    load: Vec<Load>,
    /// Check only this rule; can be repeated [default: all rules]
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: Vec<&'static Rule>,
    /// Leave out this rule; can be repeated
    #[arg(long, value_name = "RULE", value_parser = rule)]
    ignore: Vec<&'static Rule>,
    /// Exit with 1 only if there are findings of this level or a higher one
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    fail_on: FailOn,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the findings to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List the rules, with the reason for each, instead of checking manifests
    #[arg(long, conflicts_with_all = ["filename", "output"])]
    list: bool,
}

/// The output format.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations for GitHub Actions.
    Github,
}

/// The lowest level that fails.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum FailOn {
    /// Every finding.
    Note,
    /// Warnings and errors.
    #[default]
    Warning,
    /// Errors.
    Error,
}

impl From<FailOn> for Level {
    fn from(level: FailOn) -> Level {
        match level {
            FailOn::Note => Level::Note,
            FailOn::Warning => Level::Warning,
            FailOn::Error => Level::Error,
        }
    }
}

/// The rule with this id.
fn rule(id: &str) -> Result<&'static Rule, String> {
    Rule::named(id).ok_or_else(|| {
        let hint = similar(id, RULES.iter().map(|rule| rule.id));
        let hint =
            hint.unwrap_or_else(|| Hint::from("`kube-lockstep lint --list` shows the rules"));
        format!("there is no such rule: {hint}")
    })
}

/// A finding as a line of the JSON output.
#[derive(Serialize)]
struct Line<'a> {
    rule: &'a str,
    level: Level,
    evidence: Evidence,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    file: &'a str,
    line: usize,
    column: usize,
    object: &'a ObjectName,
}

/// The last line of the JSON output.
#[derive(Serialize)]
struct Summary {
    hpas: usize,
    vpas: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// The result of a check.
struct Checked {
    findings: Vec<Finding>,
    rules: Vec<&'static Rule>,
    summary: Summary,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let rules = args.rules()?;
    if args.list {
        list(&rules, args.format)?;
        return Ok(exit::CONFORMS);
    }
    let options = args.options()?;
    let manifests = args.read().map_err(for_lint)?;
    let mut output: Box<dyn Write> = match (&args.output, args.format) {
        (Some(path), _) => Box::new(ReportFile::open("--output", path)?),
        (None, Format::Text) => Box::new(Stdout),
        (None, _) => Box::new(io::stdout()),
    };
    manifests.hpas.iter().filter(|hpa| manifests.target(hpa).is_none()).for_each(note_on_target);
    let findings = check(&manifests, &options, &rules);
    let count = |level: Level| findings.iter().filter(|it| it.rule.level == level).count();
    let summary = Summary {
        hpas: manifests.hpas.len(),
        vpas: manifests.vpas.len(),
        errors: count(Level::Error),
        warnings: count(Level::Warning),
        notes: count(Level::Note),
    };
    let fails = findings.iter().any(|finding| finding.rule.level >= args.fail_on.into());
    let checked = Checked { findings, rules, summary };
    unless_closed(checked.write(args.format, args.output.is_some(), &mut *output))?;
    Ok(if fails { exit::DIVERGES } else { exit::CONFORMS })
}

/// A note on an HPA whose target is not in the files.
fn note_on_target(hpa: &ValidHpa) {
    let target = &hpa.hpa.target;
    let (kind, name) = (&target.kind, &target.name);
    let what = format!(
        "{}: {kind} {name}, the target of HPA {}, is not in the files, so its requests, labels and \
         replicas are not checked",
        hpa.object.place(),
        hpa.name
    );
    tell(&note_text(&what, columns()));
}

/// A failure whose commands are those of this subcommand.
fn for_lint(failure: Failure) -> Failure {
    let own = |text: &str| text.replace("kube-lockstep predict -f -", "kube-lockstep lint -f -");
    let hint = failure.problem.hint.as_ref().map(|hint| Hint::Text(own(&hint.to_string())));
    let what = own(&failure.problem.what);
    Failure { problem: Diagnostic { what, hint, ..failure.problem }, ..failure }
}

impl Args {
    fn read(&self) -> Result<Manifests, Failure> {
        let files = read_manifests(&self.filename, self.recursive)?;
        Manifests::read(&files, &self.load)
            .map_err(|error| invalid_manifests(&self.filename, error))
    }

    /// The selected rules.
    fn rules(&self) -> Result<Vec<&'static Rule>, Failure> {
        let has = |rules: &[&Rule], rule: &Rule| rules.iter().any(|it| it.id == rule.id);
        let is_selected = |rule: &&&Rule| {
            (self.rule.is_empty() || has(&self.rule, rule)) && !has(&self.ignore, rule)
        };
        let rules: Vec<&Rule> = RULES.iter().filter(is_selected).copied().collect();
        if rules.is_empty() {
            return Err(Failure::usage("no rule is left").hint("leave out --ignore or --rule"));
        }
        Ok(rules)
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut options = Options::of(self.release.release);
        for setting in &self.feature_gates {
            let set = options.gates.set(setting);
            set.map_err(|error| {
                feature_gates::failure("--feature-gates", options.release, &error)
            })?;
        }
        Ok(options)
    }
}

impl Checked {
    /// Writes the findings; without colors to a file.
    fn write(&self, format: Format, is_file: bool, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text if is_file => write!(out, "{}", strip_str(&self.text()))?,
            Format::Text => out.write_all(self.text().as_bytes())?,
            Format::Json => self.write_json(out)?,
            Format::Sarif => {
                let folders = folders();
                let path = |file: &str| folders.relative(file);
                let version = env!("CARGO_PKG_VERSION");
                let log = sarif::log(&self.findings, &self.rules, version, &path);
                writeln!(out, "{log:#}")?;
            }
            Format::Github => self.write_annotations(out)?,
        }
        out.flush()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for Finding { rule, evidence, diagnostic, .. } in &self.findings {
            let style = match rule.level {
                Level::Error => BAD,
                Level::Warning => WARN,
                Level::Note => STRONG,
            };
            let place = Diagnostic { what: String::new(), ..diagnostic.clone() }.located("");
            let level = paint(style, &format!("{}:", rule.level));
            let source = paint(DIM, &format!("[{}, {evidence}]", rule.id));
            let _ = writeln!(text, "{place}{level} {} {source}", diagnostic.what);
            if let Some(hint) = diagnostic.hint_text() {
                let _ = writeln!(text, "  {} {hint}", paint(WARN, "hint:"));
            }
        }
        let Summary { errors, warnings, notes, .. } = self.summary;
        let counts = [(errors, "error"), (warnings, "warning"), (notes, "note")];
        let counts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| counted(count, what))
            .collect();
        let checked = self.checked();
        let _ = match counts.is_empty() {
            true => writeln!(text, "no findings in {checked}"),
            false => writeln!(
                text,
                "{} in {checked}; `kube-lockstep lint --list` explains the rules",
                counts.join(", ")
            ),
        };
        text
    }

    /// `3 HPAs and 1 VPA`.
    fn checked(&self) -> String {
        let Summary { hpas, vpas, .. } = self.summary;
        let kinds = [(hpas, "HPA"), (vpas, "VPA")].into_iter().filter(|(count, _)| *count > 0);
        kinds.map(|(count, kind)| counted(count, kind)).collect::<Vec<_>>().join(" and ")
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for Finding { rule, evidence, diagnostic, object, .. } in &self.findings {
            let place = diagnostic.place.as_deref();
            let line = Line {
                rule: rule.id,
                level: rule.level,
                evidence: *evidence,
                message: &diagnostic.what,
                hint: diagnostic.hint_text(),
                file: diagnostic.file().unwrap_or_default(),
                line: place.map_or(1, |place| place.line),
                column: place.map_or(1, |place| place.column),
                object,
            };
            json::line(out, &line)?;
        }
        json::line(out, &serde_json::json!({ "summary": self.summary }))
    }

    fn write_annotations(&self, out: &mut dyn Write) -> io::Result<()> {
        let folders = folders();
        for Finding { rule, diagnostic, .. } in &self.findings {
            let kind = match rule.level {
                Level::Error => AnnotationKind::Error,
                Level::Warning => AnnotationKind::Warning,
                Level::Note => AnnotationKind::Notice,
            };
            let place = diagnostic.place.as_deref();
            let annotation = Annotation {
                kind,
                file: folders.relative(diagnostic.file().unwrap_or_default()),
                line: place.map(|place| place.line),
                column: place.map(|place| place.column),
                title: rule.id.to_owned(),
                message: diagnostic.in_one_line("\nhint: "),
            };
            writeln!(out, "{annotation}")?;
        }
        Ok(())
    }
}

/// Lists rules.
fn list(rules: &[&'static Rule], format: Format) -> anyhow::Result<()> {
    match format {
        Format::Text => {}
        Format::Json => {
            for rule in rules {
                unless_closed(json::line(&mut io::stdout(), rule))?;
            }
            return Ok(());
        }
        Format::Sarif | Format::Github => {
            let what = "--list has no format but text and json";
            return Err(Failure::usage(what).hint("leave out --format").into());
        }
    }
    let mut text = String::new();
    for rule in rules {
        let _ = writeln!(text, "{} ({})", paint(STRONG, rule.id), rule.level);
        text.push_str(&wrapped("    ", rule.summary, columns()));
        text.push_str(&wrapped("    ", rule.reason, columns()));
        let _ = writeln!(text, "    {}", paint(DIM, rule.link));
        let command = format!("kube-lockstep predict {}", rule.fixture());
        let _ = writeln!(text, "    `{command}` shows the effect");
    }
    show(&text)?;
    Ok(())
}
