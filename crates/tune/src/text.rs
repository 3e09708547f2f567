//! The result of a search as text.

use std::fmt;

use super::search::spread;
use super::tuned::{Change, Check, Patch, Setting, Tuned, Without};
use kube_lockstep_manifests::AutoscalerKind;
use kube_lockstep_manifests::field::{FieldPath, value_text};
use kube_lockstep_report::columns::Column;
use kube_lockstep_report::comparison::{ComparisonRow, SettingName, figures_text};
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::front::{Dot, FrontChart};
use kube_lockstep_report::{counted, thousands, wrapped};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::shell_word;

/// The width of a text, and the width from which tables are divided.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    /// The columns of text.
    pub columns: usize,
    /// The most columns of a table.
    pub most: usize,
}

/// The most settings of the front that the table shows.
const MOST_OF_FRONT: usize = 8;

impl Change {
    /// `maxReplicas: 10 → 20`.
    #[must_use]
    pub fn text(&self) -> String {
        let Change { hpa, path, from, to } = self;
        let hpa = hpa.as_ref().map(|hpa| format!("{hpa}: ")).unwrap_or_default();
        let path = path.strip_prefix("spec.").unwrap_or(path);
        format!("{hpa}{path}: {} → {}", value_text(from), value_text(to))
    }
}

impl Setting {
    /// The changes from the current setting.
    #[must_use]
    pub fn text(&self) -> String {
        match self.changes.is_empty() {
            true => "the current setting".to_owned(),
            false => self.changes.iter().map(Change::text).collect::<Vec<_>>().join("; "),
        }
    }
}

impl Patch {
    /// The command that applies the patch. A manifest of an older version is patched in that
    /// version: its fields may have other names in the newest one.
    #[must_use]
    pub fn command(&self) -> String {
        let kind = match (self.kind, self.manifest["apiVersion"].as_str().unwrap_or_default()) {
            (AutoscalerKind::Vpa, _) => "vpa".to_owned(),
            (AutoscalerKind::Hpa, "autoscaling/v2") => "hpa".to_owned(),
            (AutoscalerKind::Hpa, version) => {
                let version = version.trim_start_matches("autoscaling/");
                format!("horizontalpodautoscalers.{version}.autoscaling")
            }
        };
        let namespace = self.manifest["metadata"]["namespace"].as_str();
        let namespace = namespace.map(|it| format!(" -n {}", shell_word(it)));
        format!(
            "kubectl patch {kind} {}{} --type merge -p {}",
            shell_word(&self.name),
            namespace.unwrap_or_default(),
            shell_word(&self.patch.to_string())
        )
    }
}

impl Tuned {
    /// The settings to show, with their names: the current one, the best one, and others of the
    /// front.
    #[must_use]
    pub fn shown(&self) -> Vec<(String, &Setting)> {
        let mut shown = vec![("current".to_owned(), &self.current)];
        let changed = self.best.iter().filter(|best| !best.changes.is_empty());
        shown.extend(changed.map(|best| ("best".to_owned(), best)));
        let is_new =
            |setting: &&Setting| !shown.iter().any(|(_, known)| known.point == setting.point);
        let others: Vec<&Setting> = self.front.iter().filter(is_new).collect();
        let letters = ('a'..).map(|letter| letter.to_string());
        shown.extend(letters.zip(spread(&others, MOST_OF_FRONT)));
        shown
    }

    /// The result as text. `subject`: the name of the HPA, and the release.
    #[must_use]
    pub fn text(&self, subject: &Subject<'_>, width: Width) -> String {
        let mut out = wrapped("", &self.headline(), width.columns);
        out.push('\n');
        let shown = self.shown();
        let row = |(name, setting): &(String, &Setting)| {
            subject.row(SettingName::of_only_scenario(name), setting.figures)
        };
        out += &figures_text(&shown.iter().map(row).collect::<Vec<_>>(), width.most);
        if shown.len() > 1 {
            out.push('\n');
        }
        for (name, setting) in shown.iter().skip(1) {
            let mut text = setting.text();
            if self.days > 1 {
                text += &format!("; {}", self.days_text(setting.days_kept));
            } else if setting.days_kept == 0 {
                text += "; does not meet the objective";
            }
            out += &wrapped(&format!("{name}  "), &text, width.columns);
        }
        out += &self.contributions_text(subject, width);
        out += &self.checks_text(width);
        for command in self.commands() {
            out += &format!("\n{command}\n");
        }
        out
    }

    /// The commands that apply the best setting, and the flags that it sets.
    fn commands(&self) -> Vec<String> {
        let changes = self.best.iter().flat_map(|best| &best.changes);
        let flags = changes.filter_map(|Change { path, to, .. }| {
            let path = FieldPath::parse(path).ok()?;
            let (component, flag) = path.flag()?;
            Some(format!("# flag of the {component}: --{flag}={}", value_text(to)))
        });
        self.patches.iter().map(Patch::command).chain(flags).collect()
    }

    /// Returns true if the best setting meets the objective on all days.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.days_kept == self.days)
    }

    /// The chart of all settings.
    #[must_use]
    pub fn chart(&self, subject: &Subject<'_>) -> FrontChart {
        let shown = self.shown();
        let figure = |name: &str, setting: &Setting| {
            name.parse().ok().and_then(|column: Column| column.figure(&setting.figures))
        };
        let dot = |setting: &Setting| {
            let shown = shown.iter().find(|(_, it)| it.point == setting.point);
            Some(Dot {
                across: figure(self.minimized, setting)?,
                up: figure(self.risk, setting)?,
                is_on_front: self.front.iter().any(|it| it.point == setting.point),
                is_kept: setting.days_kept == self.days,
                name: shown.map(|it| it.0.clone()),
                about: setting.text(),
            })
        };
        let named = shown.iter().map(|(_, setting)| *setting);
        let is_shown = |setting: &&Setting| shown.iter().any(|(_, it)| it.point == setting.point);
        let others = self.all.iter().filter(|setting| !is_shown(setting));
        let dots = named.chain(others).filter_map(dot).collect();
        FrontChart {
            title: subject.to_string(),
            summary: self.headline(),
            commands: self.commands(),
            notes: self.contributions_and_checks(),
            across: self.minimized,
            up: self.risk,
            dots,
        }
    }

    /// The result in a few sentences.
    #[must_use]
    pub fn headline(&self) -> String {
        match &self.stopped {
            Some(error) => format!(
                "The controller stops the HPAs of this workload, and no setting changes that, so \
                 there is no recommendation: {error}. Searched: {}.",
                self.searched()
            ),
            None => format!("{}{}", self.loads_per_pod_text(), self.result_text()),
        }
    }

    /// A sentence on loads that do not depend on the number of pods.
    fn loads_per_pod_text(&self) -> String {
        let names = self.loads_per_pod.join(", ");
        let Some(first) = self.loads_per_pod.first() else { return String::new() };
        format!(
            "The load of {names} is per pod: it does not depend on the number of pods, so fewer \
             pods always look cheaper. Give it as a total: --load {first}=total:…, or `load` in a \
             scenario. "
        )
    }

    fn result_text(&self) -> String {
        let searched = self.searched();
        let Tuned { objective, minimized, .. } = self;
        let Some(best) = &self.best else {
            return format!("No setting meets the objective {objective}. Searched: {searched}.");
        };
        if !self.is_met() {
            return format!(
                "No setting meets the objective {objective} on all days. The closest one meets it \
                 {}. Searched: {searched}.",
                self.days_text(best.days_kept)
            );
        }
        let checks = match self.checks.iter().all(|check| check.broken.is_empty()) {
            true => "",
            false => &self.failed_text(),
        };
        if best.changes.is_empty() {
            return format!(
                "The current setting has the lowest value of {minimized} of all settings that meet \
                 the objective {objective}{checks}. Searched: {searched}."
            );
        }
        let column = self.minimized.parse::<Column>().ok();
        let figure = |setting: &Setting| column.and_then(|it| it.figure(&setting.figures));
        let text = |setting: &Setting| column.map(|it| it.text(&setting.figures));
        let (before, after) = (figure(&self.current), figure(best));
        let percent = before.zip(after).filter(|(before, _)| *before > 0.0);
        let percent = percent.map(|(before, after)| (after - before) / before * 100.0);
        let percent = percent.map(|percent| format!(" ({percent:+.1}%)")).unwrap_or_default();
        let days = if self.days > 1 { self.days_text(best.days_kept) } else { String::new() };
        let reversals = self.reversals_text();
        format!(
            "The best setting changes {}: {minimized} {} → {}{percent}. It meets the objective \
             {objective}{}{days}{checks}.{reversals} Searched: {searched}.",
            counted(best.changes.len(), "field"),
            text(&self.current).unwrap_or_default(),
            text(best).unwrap_or_default(),
            if days.is_empty() { "" } else { " " },
        )
    }

    /// The best setting does not pass all checks, nor does another one that was checked.
    fn failed_text(&self) -> String {
        let (checked, kept) = (self.checked_settings, self.kept_settings);
        let others = match checked.saturating_sub(1) {
            0 => String::new(),
            others if checked == kept => format!("; nor do the other {others} that meet it"),
            others => format!("; nor do {others} others of the {} that meet it", thousands(kept)),
        };
        format!(", but does not pass all checks{others}")
    }

    /// A sentence on the reversals, if the best setting has many more of them.
    fn reversals_text(&self) -> String {
        let of = |setting: &Setting| Some(setting.figures.scaling?.direction_changes);
        let both = of(&self.current).zip(self.best.as_ref().and_then(of));
        let more = both.filter(|(before, after)| *after > (2 * before).max(before + 4));
        more.map_or_else(String::new, |(before, after)| {
            format!(" It changes direction more often: reversals {before} → {after}.")
        })
    }

    /// `300 settings of a grid of 403,200`.
    fn searched(&self) -> String {
        let settings = counted(self.evaluated, "setting");
        let of = match (self.is_interrupted, self.is_exhaustive) {
            (true, _) => format!("{settings}, until the search was interrupted"),
            (_, true) if self.evaluated == 1 => "the only setting of the grid".to_owned(),
            (_, true) => format!("all {settings} of the grid"),
            _ => format!("{settings} of a grid of {}", thousands(self.grid)),
        };
        match (self.invalid, &self.invalid_reason) {
            (0, _) => of,
            (invalid, Some(why)) => format!("{of}; {} invalid: {why}", thousands(invalid)),
            (invalid, None) => format!("{of}; {} invalid", thousands(invalid)),
        }
    }

    fn days_text(&self, kept: usize) -> String {
        match kept {
            kept if kept == self.days => format!("on each of {kept} days"),
            kept => format!("on {kept} of {} days", self.days),
        }
    }

    /// The figures of the best setting without each of its changes.
    fn contributions_text(&self, subject: &Subject<'_>, width: Width) -> String {
        if self.contributions.len() < 2 {
            return String::new();
        }
        let names = short_names(self.contributions.iter().map(|without| &without.change));
        let row = |(without, name): (&Without, &String)| {
            let is_met = without.days_kept == self.days;
            let objective = if is_met { "" } else { " (objective not met)" };
            let name = SettingName::of_only_scenario(&format!("without {name}{objective}"));
            Some(subject.row(name, without.figures?))
        };
        let best = self
            .best
            .iter()
            .map(|best| subject.row(SettingName::of_only_scenario("best"), best.figures));
        let rows: Vec<ComparisonRow> =
            best.chain(self.contributions.iter().zip(&names).filter_map(row)).collect();
        format!("\n{}", figures_text(&rows, width.most))
    }

    fn checks_text(&self, width: Width) -> String {
        let lines = self.check_lines();
        let lines =
            lines.iter().map(|(name, text)| wrapped(&format!("{name}: "), text, width.columns));
        let text: String = lines.collect();
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    /// The results of the checks, each with its name.
    fn check_lines(&self) -> Vec<(&'static str, String)> {
        let kept: Vec<&str> = self
            .checks
            .iter()
            .filter(|check| check.broken.is_empty())
            .map(|check| &*check.condition)
            .collect();
        let kept = (!kept.is_empty()).then(|| {
            ("checked", format!("the best setting meets the objective: {}", kept.join(", ")))
        });
        let broken = self.checks.iter().filter(|check| !check.broken.is_empty());
        let broken = broken.map(|Check { condition, broken }| {
            ("not met", format!("{condition}: {}", broken.join("; ")))
        });
        kept.into_iter().chain(broken).collect()
    }

    /// What the changes of the best setting contribute, and its checks, for the page.
    fn contributions_and_checks(&self) -> Vec<String> {
        let both = [self.minimized, self.risk].map(|name| name.parse::<Column>().ok());
        let figures = |figures: &Figures| {
            let text = |column: &Column| format!("{} {}", column.name(), column.text(figures));
            both.iter().flatten().map(text).collect::<Vec<_>>().join(", ")
        };
        let names = short_names(self.contributions.iter().map(|without| &without.change));
        let contributions = self.contributions.iter().zip(&names).filter_map(|(without, name)| {
            let is_met = without.days_kept == self.days;
            let objective = if is_met { "" } else { "; the objective is not met" };
            Some(format!("without {name}: {}{objective}", figures(&without.figures?)))
        });
        let several = contributions.filter(|_| self.contributions.len() > 1);
        let checks = self.check_lines().into_iter();
        several.chain(checks.map(|(name, text)| format!("{name}: {text}"))).collect()
    }
}

/// The shortest ends of paths that differ from each other, such as `target.averageUtilization`.
fn short_names<'c>(changes: impl Iterator<Item = &'c Change>) -> Vec<String> {
    let full = |change: &Change| {
        let path = change.path.trim_start_matches("spec.").trim_start_matches("behavior.");
        match &change.hpa {
            Some(hpa) => format!("{hpa}.{path}"),
            None => path.to_owned(),
        }
    };
    let paths: Vec<String> = changes.map(full).collect();
    let end = |path: &String, parts: usize| {
        let all: Vec<&str> = path.split('.').collect();
        all[all.len().saturating_sub(parts)..].join(".")
    };
    let most = paths.iter().map(|path| path.split('.').count()).max().unwrap_or(0);
    let names = (2..=most).map(|parts| paths.iter().map(|path| end(path, parts)).collect());
    let is_unique = |names: &Vec<String>| {
        names.iter().enumerate().all(|(index, name)| !names[..index].contains(name))
    };
    names.into_iter().find(is_unique).unwrap_or(paths)
}

/// The scenario of a search, and its release.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// The scenario.
    pub scenario: &'s Scenario,
    /// The release of Kubernetes; without an HPA, that of the VPA.
    pub release: &'s str,
}

impl<'s> Subject<'s> {
    /// The name of the first HPA.
    fn hpa(&self) -> Option<&'s str> {
        self.scenario.hpas.first().map(|hpa| &*hpa.name)
    }

    /// The row of a setting in a table.
    #[must_use]
    pub fn row(&self, setting: SettingName, figures: Figures) -> ComparisonRow {
        ComparisonRow {
            setting,
            namespace: self.scenario.namespace.to_string(),
            hpa: self.hpa().map(str::to_owned),
            vpa: self.scenario.vpa_name().map(ToString::to_string),
            release: self.release.to_owned(),
            figures: Some(figures),
            ..ComparisonRow::default()
        }
    }
}

/// `HPA shop/web`, `VPA shop/web`.
impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self.hpa() {
            Some(hpa) => ("HPA", hpa),
            None => ("VPA", self.scenario.vpa_name().map_or("", |name| name)),
        };
        write!(f, "{kind} {}/{name}", self.scenario.namespace)
    }
}
