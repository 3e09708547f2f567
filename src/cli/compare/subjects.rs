//! The scenarios that are compared, each with its other settings.

use std::sync::Arc;

use super::super::failure::Failure;
use super::super::fixtures::{AnyFixture, Fixture, Fixtures};
use super::super::manifests::{
    self, Autoscalers, failure, missing_values, note_missing, requires_values,
};
use super::super::run::parse_each;
use super::super::setting::Setting;
use super::{Args, CURRENT};
use kube_autoscaler_models::time::Span;
use kube_lockstep_manifests::{AutoscalerKind, Draft, DraftError, Drafts, HpaName};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::{Diagnostic, Hint, Scenario};

/// A scenario with its other settings.
pub(super) struct Subject<'s> {
    pub(super) scenario: Arc<Scenario>,
    /// The settings that change its HPAs, each with the changed scenario.
    pub(super) settings: Vec<(&'s Setting, Arc<Scenario>)>,
}

/// The scenarios, with notes on the settings.
pub(super) struct Subjects<'s> {
    pub(super) list: Vec<Subject<'s>>,
    pub(super) notes: Vec<String>,
    /// Notes on the scenarios and settings that are left out, which were printed.
    pub(super) left_out: Vec<String>,
}

/// The scenarios of the files or of the manifests, each with those settings that are for it.
pub(super) fn subjects<'s>(args: &Args, settings: &[&'s Setting]) -> Result<Subjects<'s>, Failure> {
    let selected = args.hpas.select();
    if !args.manifests.filename.is_empty() {
        return from_manifests(args, settings, selected);
    }
    args.manifests.check_unused(&args.names)?;
    selected.check_unused(&args.names)?;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    from_files(&fixtures.in_order(&args.names)?, settings)
}

/// The predicted HPAs.
struct Known {
    names: Vec<HpaName>,
}

impl Known {
    /// Fails if two settings have the same name, or if a setting is for no HPA. `scenarios`: the
    /// HPAs of each scenario. Returns notes on settings.
    fn check(
        &self,
        settings: &[&Setting],
        scenarios: &[Vec<HpaName>],
    ) -> Result<Vec<String>, Failure> {
        let mut notes = Vec::new();
        for (index, setting) in settings.iter().enumerate() {
            let name = &setting.name;
            if name == CURRENT || settings[..index].iter().any(|other| other.name == *name) {
                let what = format!("{}: another setting is named `{name}`", setting.flag());
                return Err(Failure::usage(what).hint("begin it with another name and a colon"));
            }
            if !scenarios.iter().any(|hpas| setting.is_for(hpas, &self.names)) {
                return Err(self.no_such_hpa(setting));
            }
            notes.extend(setting.check_manifests(&self.names)?);
        }
        Ok(notes)
    }

    fn no_such_hpa(&self, setting: &Setting) -> Failure {
        let names: Vec<&str> = self.names.iter().map(|hpa| &*hpa.name).collect();
        let at = format!("{} {}", setting.flag(), setting.name);
        let what = match setting.manifest_names().join(", ") {
            names if names.is_empty() => format!("{at}: no such HPA"),
            names => format!("{at}: no such HPA: it contains {names}"),
        };
        Failure::usage(what).hint(format!("the HPAs are {}", names.join(", ")))
    }

    /// Applies `change` to each setting that is for a scenario with these HPAs. An error names the
    /// setting.
    fn changed_by_each<'s, T>(
        &self,
        settings: &[&'s Setting],
        hpas: &[HpaName],
        change: impl Fn(&Setting) -> Result<T, Failure>,
    ) -> Result<Vec<(&'s Setting, T)>, Failure> {
        let settings = settings.iter().filter(|setting| setting.is_for(hpas, &self.names));
        let changed = |setting: &&'s Setting| {
            let changed = change(setting).map_err(|failure| self.invalid(setting, hpas, failure));
            Ok((*setting, changed?))
        };
        settings.map(changed).collect()
    }

    /// An error of a setting, which names the HPA unless it is the only one.
    fn invalid(&self, setting: &Setting, hpas: &[HpaName], failure: Failure) -> Failure {
        let (flag, name, what) = (setting.flag(), &setting.name, &failure.problem.what);
        let hpa = match *setting.changed(hpas, &self.names) {
            [hpa] if self.names.len() > 1 => format!("HPA {}: ", hpa.name),
            _ => String::new(),
        };
        let what = format!("{flag} {name}: {hpa}{what}");
        Failure { problem: Diagnostic { what, ..failure.problem }, ..failure }
    }
}

/// The scenarios of files.
fn from_files<'s>(found: &[Fixture], settings: &[&'s Setting]) -> Result<Subjects<'s>, Failure> {
    // All errors are reported first.
    parse_each(found)?;
    let scenarios = found.iter().map(Fixture::parse).collect::<Result<Vec<_>, _>>()?;
    let hpas: Vec<Vec<HpaName>> = scenarios.iter().map(|it| hpa_names(it)).collect();
    let known = Known { names: hpas.concat() };
    let notes = known.check(settings, &hpas)?;
    let mut list = Vec::new();
    for ((fixture, scenario), hpas) in found.iter().zip(scenarios).zip(&hpas) {
        let settings = known.changed_by_each(settings, hpas, |setting| {
            with_setting(fixture, &scenario, setting, hpas, &known).map(Arc::new)
        });
        list.push(Subject { settings: settings?, scenario });
    }
    Ok(Subjects { list, notes, left_out: Vec::new() })
}

fn hpa_names(scenario: &Scenario) -> Vec<HpaName> {
    let name = |name: &str| HpaName {
        namespace: Some(scenario.namespace.to_string()),
        name: name.to_owned(),
    };
    scenario.hpas.iter().map(|hpa| name(&hpa.name)).collect()
}

/// The scenario of a file with another setting.
fn with_setting(
    fixture: &Fixture,
    scenario: &Scenario,
    setting: &Setting,
    hpas: &[HpaName],
    known: &Known,
) -> Result<Scenario, Failure> {
    let mut tree = scenario::to_tree(scenario);
    setting.apply(&mut tree, hpas, &known.names)?;
    let text = scenario::tree_to_yaml(&tree);
    let read = |path: &str| fixture.read_relative(path);
    let changed = scenario::parse(&scenario.path, &text, &read)
        .map_err(|error| all_problems(&error.problems))?;
    let Scenario { id, line, .. } = scenario;
    Ok(Scenario { id: id.clone(), line: *line, ..changed })
}

/// One error for all problems, with their places in files. A problem in the scenario has no place:
/// the setting changed its text, so no file contains it.
fn all_problems(problems: &[Diagnostic]) -> Failure {
    let mut located: Vec<String> = problems.iter().map(located).collect();
    located.dedup();
    let mut hints: Vec<&Hint> = problems.iter().filter_map(|it| it.hint.as_ref()).collect();
    hints.dedup();
    let hint = hints.first().filter(|_| hints.len() == 1).map(|hint| (*hint).clone());
    Failure::usage(located.join("; ")).with_hint(hint)
}

/// The message of a problem, with its place if that is in a file of the user.
fn located(problem: &Diagnostic) -> String {
    match problem.file() {
        Some(file) => problem.located(file),
        None => problem.what.clone(),
    }
}

/// The draft of a scenario, with its other settings.
struct Drafted<'s> {
    current: Draft,
    settings: Vec<(&'s Setting, Draft)>,
}

impl Drafted<'_> {
    fn drafts(&self) -> impl Iterator<Item = &Draft> {
        std::iter::once(&self.current).chain(self.settings.iter().map(|(_, draft)| draft))
    }
}

/// The scenarios of manifests. A setting may scale on other metrics than the current HPA, and use
/// other loads.
fn from_manifests<'s>(
    args: &Args,
    settings: &[&'s Setting],
    selected: Autoscalers,
) -> Result<Subjects<'s>, Failure> {
    let drafts = args.manifests.drafts_with_settings(selected.clone())?;
    let hpas: Vec<Vec<HpaName>> = drafts.list.iter().map(Draft::hpa_names).collect();
    let known = Known { names: hpas.concat() };
    let notes = known.check(settings, &hpas)?;
    let mut list = Vec::new();
    for (draft, hpas) in drafts.list.iter().zip(&hpas) {
        let settings = known.changed_by_each(settings, hpas, |setting| {
            redraft(&drafts, draft, setting, hpas, &known)
        });
        list.push(Drafted { current: draft.clone(), settings: settings? });
    }
    let others: Vec<&Draft> =
        list.iter().flat_map(|it| &it.settings).map(|(_, draft)| draft).collect();
    let all = if others.is_empty() { "" } else { ", with any of the settings" };
    drafts.check_loads(&others, all).map_err(failure)?;
    let is_complete = |draft: &Draft| draft.missing.is_empty();
    let mut left_out = Vec::new();
    if selected.skips_missing() && list.iter().any(|it| is_complete(&it.current)) {
        left_out = leave_out_incomplete(&mut list);
    }
    require_all_values(&list, &selected)?;
    let drafts = list.iter().flat_map(Drafted::drafts);
    let until = drafts.map(Draft::until).max().unwrap_or_default();
    let list = list.into_iter().map(|drafted| parse(drafted, until, &known));
    Ok(Subjects { list: list.collect::<Result<_, _>>()?, notes, left_out })
}

/// The draft of manifests with another setting.
fn redraft(
    drafts: &Drafts,
    draft: &Draft,
    setting: &Setting,
    hpas: &[HpaName],
    known: &Known,
) -> Result<Draft, Failure> {
    let mut tree = draft.hpas();
    setting.apply(&mut tree, hpas, &known.names)?;
    let changed = drafts.redraft(draft, &tree, &manifests::read_load);
    changed.map_err(|error| match error {
        DraftError::Invalid(error) => all_problems(&error.problems),
        DraftError::Options(problem) => Failure::usage(problem),
    })
}

/// Leaves out the scenarios and settings that lack a value, and names them on standard error.
/// Returns these notes.
fn leave_out_incomplete(list: &mut Vec<Drafted<'_>>) -> Vec<String> {
    let mut notes = Vec::new();
    list.retain(|it| {
        notes.extend(note_missing(&it.current, ""));
        it.current.missing.is_empty()
    });
    for drafted in list {
        drafted.settings.retain(|(setting, draft)| {
            notes.extend(note_missing(draft, &with(setting)));
            draft.missing.is_empty()
        });
    }
    notes
}

/// The setting of an HPA, after its name in a message.
fn with(setting: &Setting) -> String {
    format!(" with {} {}", setting.flag(), setting.name)
}

/// Fails if a prediction depends on a value that is missing. A value that several settings lack is
/// named once.
fn require_all_values(list: &[Drafted<'_>], selected: &Autoscalers) -> Result<(), Failure> {
    let mut missing: Vec<String> = Vec::new();
    for Drafted { current, settings } in list {
        missing.extend(missing_values(current, ""));
        let mut flags: Vec<String> = current.missing.iter().map(|it| it.flag.clone()).collect();
        for (setting, draft) in settings {
            let mut draft = draft.clone();
            draft.missing.retain(|it| !flags.contains(&it.flag));
            missing.extend(missing_values(&draft, &with(setting)));
            flags.extend(draft.missing.into_iter().map(|it| it.flag));
        }
    }
    let failure = requires_values(&missing);
    match list {
        _ if missing.is_empty() => Ok(()),
        [_] => Err(failure),
        _ => {
            let hint = selected.hint_on_missing(&[AutoscalerKind::Hpa]);
            Err(failure.with_hint(hint.map(Hint::from)))
        }
    }
}

/// Reads the drafts as scenarios. All HPAs and settings are predicted until the same time:
/// otherwise, their figures could not be compared.
fn parse<'s>(drafted: Drafted<'s>, until: Span, known: &Known) -> Result<Subject<'s>, Failure> {
    let Drafted { mut current, mut settings } = drafted;
    current.set_until(until);
    settings.iter_mut().for_each(|(_, draft)| draft.set_until(until));
    let hpas = current.hpa_names();
    let changed = |(setting, draft): (&'s Setting, Draft)| {
        let changed = scenario_of(&draft);
        let changed = changed.map_err(|failure| known.invalid(setting, &hpas, failure))?;
        Ok((setting, changed))
    };
    let settings = settings.into_iter().map(changed).collect::<Result<_, Failure>>()?;
    Ok(Subject { scenario: scenario_of(&current)?, settings })
}

fn scenario_of(draft: &Draft) -> Result<Arc<Scenario>, Failure> {
    match manifests::parse(draft)? {
        AnyFixture::Hpa(scenario) => Ok(scenario),
        AnyFixture::Vpa(_) => Err(Failure::usage(format!("{}: VPAs are not compared", draft.name))),
    }
}
