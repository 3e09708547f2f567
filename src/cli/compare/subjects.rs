//! The scenarios that are compared, each with its other settings.

use std::sync::Arc;

use serde_json::Value;

use super::super::failure::Failure;
use super::super::fixtures::{Fixture, Fixtures};
use super::super::manifests::{
    self, Autoscalers, failure, missing_values, note_missing, requires_values,
};
use super::super::output::{columns, tell};
use super::super::run::parse_modeled;
use super::super::setting::{Names, Setting};
use super::{Args, CURRENT};
use kube_autoscaler_models::time::Span;
use kube_lockstep_manifests::{AutoscalerKind, Draft, DraftError, Drafts};
use kube_lockstep_report::outcome::note_text;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::{Diagnostic, Hint, Scenario};

/// A scenario with its other settings.
pub(super) struct Subject<'s> {
    pub(super) scenario: Arc<Scenario>,
    /// The settings that change its autoscalers, each with the changed scenario.
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
    let selected = args.autoscalers.select().skipping(args.skip).applying_vpas();
    if !args.manifests.filename.is_empty() {
        return from_manifests(args, settings, selected);
    }
    args.manifests.check_unused(&args.names)?;
    selected.check_unused(&args.names)?;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    from_files(&fixtures.in_order(&args.names)?, settings)
}

/// The predicted autoscalers.
struct Known {
    names: Names,
}

impl Known {
    /// Fails if two settings have the same name, or if a setting is for no autoscaler. `scenarios`:
    /// the autoscalers of each scenario. Returns notes on settings.
    fn check(&self, settings: &[&Setting], scenarios: &[Names]) -> Result<Vec<String>, Failure> {
        let mut notes = Vec::new();
        for (index, setting) in settings.iter().enumerate() {
            let name = &setting.name;
            if name == CURRENT || settings[..index].iter().any(|other| other.name == *name) {
                let what = format!("{}: another setting is named `{name}`", setting.flag());
                return Err(Failure::usage(what).hint("begin it with another name and a colon"));
            }
            if !scenarios.iter().any(|own| setting.is_for(own, &self.names)) {
                return Err(self.no_such_autoscaler(setting));
            }
            notes.extend(setting.check_manifests(&self.names.hpas)?);
        }
        Ok(notes)
    }

    fn no_such_autoscaler(&self, setting: &Setting) -> Failure {
        let at = format!("{} {}", setting.flag(), setting.name);
        let kind = setting.missing_kind(&self.names);
        let what = match setting.manifest_names().join(", ") {
            names if names.is_empty() => format!("{at}: no such {kind}"),
            names => format!("{at}: no such HPA: it contains {names}"),
        };
        Failure::usage(what).hint(self.names.listed())
    }

    /// Applies `change` to each setting that is for a scenario with these autoscalers. An error
    /// names the setting.
    fn changed_by_each<'s, T>(
        &self,
        settings: &[&'s Setting],
        own: &Names,
        change: impl Fn(&Setting) -> Result<T, Failure>,
    ) -> Result<Vec<(&'s Setting, T)>, Failure> {
        let settings = settings.iter().filter(|setting| setting.is_for(own, &self.names));
        let changed = |setting: &&'s Setting| {
            let changed = change(setting).map_err(|failure| self.invalid(setting, own, failure));
            Ok((*setting, changed?))
        };
        settings.map(changed).collect()
    }

    /// An error of a setting, which names the autoscaler unless it is the only one.
    fn invalid(&self, setting: &Setting, own: &Names, failure: Failure) -> Failure {
        let (flag, name, what) = (setting.flag(), &setting.name, &failure.problem.what);
        let owner = match *setting.changed(own, &self.names) {
            [(kind, name)] if self.names.all().count() > 1 => format!("{kind} {}: ", name.name),
            _ => String::new(),
        };
        let what = format!("{flag} {name}: {owner}{what}");
        Failure { problem: Diagnostic { what, ..failure.problem }, ..failure }
    }
}

/// The scenarios of files.
fn from_files<'s>(found: &[Fixture], settings: &[&'s Setting]) -> Result<Subjects<'s>, Failure> {
    // All errors are reported first.
    let (mut scenarios, mut measured, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (fixture, parsed) in found.iter().zip(parse_modeled(found)?) {
        match parsed.applied() {
            Ok(scenario) => {
                scenarios.push(scenario);
                measured.push(fixture);
            }
            Err(failure) if found.len() == 1 => return Err(failure),
            Err(failure) => left_out.push(failure.problem.what),
        }
    }
    left_out.iter().for_each(|note| tell(&note_text(note, columns())));
    let names: Vec<Names> = scenarios.iter().map(|it| Names::of(it)).collect();
    let known = Known { names: Names::concat(&names) };
    let notes = known.check(settings, &names)?;
    let mut list = Vec::new();
    for ((fixture, scenario), own) in measured.into_iter().zip(scenarios).zip(&names) {
        let settings = known.changed_by_each(settings, own, |setting| {
            with_setting(fixture, &scenario, setting, own, &known)
        });
        list.push(Subject { settings: settings?, scenario });
    }
    Ok(Subjects { list, notes, left_out })
}

/// The scenario of a file with another setting.
fn with_setting(
    fixture: &Fixture,
    scenario: &Scenario,
    setting: &Setting,
    own: &Names,
    known: &Known,
) -> Result<Arc<Scenario>, Failure> {
    let containers = scenario.container_names();
    let apply = |tree: &mut Value| setting.apply(tree, own, &known.names, &containers);
    if scenario.hpas.is_empty() {
        // The file of a VPA alone can't have flags of the updater.
        let mut tree = scenario::to_manifests(scenario);
        apply(&mut tree)?;
        let changed = scenario::with_manifests(scenario, &tree);
        return changed.map(Arc::new).map_err(|problems| all_problems(&problems));
    }
    let mut tree = scenario::to_tree(scenario);
    apply(&mut tree)?;
    let changed = fixture.parse_text(&scenario::tree_to_yaml(&tree));
    let changed = changed.map_err(|error| all_problems(&error.problems))?.applied()?;
    Ok(Arc::new(Scenario { line: scenario.line, ..(*changed).clone() }))
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
    let names: Vec<Names> = drafts.list.iter().map(draft_names).collect();
    let known = Known { names: Names::concat(&names) };
    let notes = known.check(settings, &names)?;
    let mut list = Vec::new();
    for (draft, own) in drafts.list.iter().zip(&names) {
        let settings = known.changed_by_each(settings, own, |setting| {
            redraft(&drafts, draft, setting, own, &known)
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

/// The names of the autoscalers of a draft.
fn draft_names(draft: &Draft) -> Names {
    Names { hpas: draft.hpa_names(), vpas: draft.vpa_name().into_iter().collect() }
}

/// The draft of manifests with another setting.
fn redraft(
    drafts: &Drafts,
    draft: &Draft,
    setting: &Setting,
    own: &Names,
    known: &Known,
) -> Result<Draft, Failure> {
    let mut tree = draft.manifests();
    setting.apply(&mut tree, own, &known.names, &draft.container_names())?;
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

/// The setting of an autoscaler, after its name in a message.
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
            let kind = |kind: &AutoscalerKind| list.iter().any(|it| it.current.kind == *kind);
            let kinds: Vec<_> = AutoscalerKind::ALL.into_iter().filter(kind).collect();
            let hint = selected.hint_on_missing(&kinds);
            Err(failure.with_hint(hint.map(Hint::from)))
        }
    }
}

/// Reads the drafts as scenarios. All autoscalers and settings are predicted until the same time:
/// otherwise, their figures could not be compared.
fn parse<'s>(drafted: Drafted<'s>, until: Span, known: &Known) -> Result<Subject<'s>, Failure> {
    let Drafted { mut current, mut settings } = drafted;
    current.set_until(until);
    settings.iter_mut().for_each(|(_, draft)| draft.set_until(until));
    let own = draft_names(&current);
    let changed = |(setting, draft): (&'s Setting, Draft)| {
        let changed = manifests::applied(&draft);
        let changed = changed.map_err(|failure| known.invalid(setting, &own, failure))?;
        Ok((setting, changed))
    };
    let settings = settings.into_iter().map(changed).collect::<Result<_, Failure>>()?;
    Ok(Subject { scenario: manifests::applied(&current)?, settings })
}
