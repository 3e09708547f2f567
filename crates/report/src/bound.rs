//! Bounds on the figures of a comparison, such as `missing<=0.1` and `pod-hours<=+5%`.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::columns::Column;
use super::figures::Figures;

/// A bound on a figure.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    column: Column,
    limit: Limit,
}

/// The largest figure that a bound allows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    /// This figure.
    Figure(f64),
    /// The figure of the base plus this difference.
    Difference(f64),
    /// The figure of the base plus a part of it, in percent.
    Percent(f64),
}

impl Bound {
    /// The name of the figure.
    #[must_use]
    pub fn column(&self) -> &'static str {
        self.column.name
    }

    /// Returns true if the figures contain that of the bound.
    #[must_use]
    pub fn applies_to(&self, figures: &Figures) -> bool {
        self.column.applies(figures)
    }

    /// Returns true if the limit is a difference from the figures of a base.
    #[must_use]
    pub fn is_relative(&self) -> bool {
        !matches!(self.limit, Limit::Figure(_))
    }

    /// The largest figure that the bound allows. `base` has the figures that a difference refers
    /// to. None: it has no such figure.
    #[must_use]
    pub fn limit(&self, base: &Figures) -> Option<f64> {
        let base = || self.column.figure(base);
        match self.limit {
            Limit::Figure(figure) => Some(figure),
            Limit::Difference(difference) => Some(base()? + difference),
            Limit::Percent(percent) => base().map(|base| base + base * percent / 100.0),
        }
    }

    /// Returns the difference by which a figure exceeds the bound: 0 if it is kept. None: there is
    /// no such figure.
    #[must_use]
    pub fn excess(&self, figures: &Figures, base: &Figures) -> Option<f64> {
        let (figure, limit) = (self.column.figure(figures)?, self.limit(base)?);
        // The limit may be the result of a calculation with rounding errors.
        Some(if figure <= limit + limit.abs() * 1e-9 { 0.0 } else { figure - limit })
    }

    /// A figure that breaks the bound: `missing 0.31, limit 0.10`.
    #[must_use]
    pub fn broken(&self, figures: &Figures, base: &Figures) -> String {
        let Bound { column, .. } = self;
        let (limit, text) = (self.limit(base), column.text(figures));
        let rounded = column.text_of(limit, 0);
        // Both may have the same digits.
        let limit = match (self.limit, limit) {
            (Limit::Difference(_) | Limit::Percent(_), _) if rounded != text => rounded,
            (_, Some(limit)) => column.exact_text(limit),
            (_, None) => rounded,
        };
        format!("{} {text}, limit {limit}", column.name())
    }

    /// Returns true if the figures keep the bound. A figure that does not exist keeps none.
    #[must_use]
    pub fn is_kept(&self, figures: &Figures, base: &Figures) -> bool {
        self.excess(figures, base) == Some(0.0)
    }
}

/// `missing<=0.1`, `above<=+5m`, `pod-hours<=+5%`.
impl Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<=", self.column.name)?;
        let figure = |figure| self.column.exact_text(figure);
        let sign = |figure: f64| if figure < 0.0 { "-" } else { "+" };
        match self.limit {
            Limit::Figure(it) => f.write_str(&figure(it)),
            Limit::Difference(it) => write!(f, "{}{}", sign(it), figure(it.abs())),
            Limit::Percent(it) => write!(f, "{}{}%", sign(it), it.abs()),
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Bound, String> {
        let text = text.trim();
        let (name, limit) = text.split_once("<=").ok_or_else(|| {
            format!("{text:?}: expected FIGURE<=LIMIT, for example missing<=0.1 or pod-hours<=+5%")
        })?;
        let (name, limit) = (name.trim(), limit.trim());
        let column: Column = name.parse().map_err(|why| format!("{text:?}: {why}"))?;
        let invalid = || {
            let example = column.exact_text(column.example());
            format!(
                "{text:?}: expected a limit such as {example}, +{example} or +5%, found {limit:?}"
            )
        };
        let (sign, amount) = match limit.split_at_checked(1) {
            Some(("+", amount)) => (Some(1.0), amount),
            Some(("-", amount)) => (Some(-1.0), amount),
            _ => (None, limit),
        };
        let limit = match (sign, amount.strip_suffix('%')) {
            (Some(sign), Some(percent)) => {
                Limit::Percent(sign * number(percent).ok_or_else(invalid)?)
            }
            (None, Some(_)) => {
                return Err(format!("{text:?}: a percentage requires a sign: +{amount}"));
            }
            (sign, None) => {
                let figure = column.parse(amount).ok_or_else(invalid)?;
                sign.map_or(Limit::Figure(figure), |sign| Limit::Difference(sign * figure))
            }
        };
        Ok(Bound { column, limit })
    }
}

/// A number without a sign.
pub(crate) fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (is_plain && number.is_finite()).then_some(number)
}

/// Bounds that hold together, separated by commas.
#[derive(Clone, Debug, Default)]
pub struct Bounds(pub Vec<Bound>);

impl Bounds {
    /// No more missing pods, time above the target, usage above the requests and OOM kills than the
    /// base has.
    #[must_use]
    pub fn no_worse() -> Bounds {
        let columns = ["missing", "above", "cpu-short", "memory-short", "oom-kills"];
        let columns = columns.into_iter().filter_map(|name| name.parse::<Column>().ok());
        Bounds(columns.map(|column| Bound { column, limit: Limit::Difference(0.0) }).collect())
    }

    /// The bounds on figures that apply: those of an HPA, of a VPA, or of both.
    #[must_use]
    pub fn applying_to(&self, figures: &Figures) -> Bounds {
        Bounds(self.0.iter().filter(|bound| bound.applies_to(figures)).copied().collect())
    }

    /// Returns true if the figures keep all bounds.
    #[must_use]
    pub fn are_kept(&self, figures: &Figures, base: &Figures) -> bool {
        self.0.iter().all(|bound| bound.is_kept(figures, base))
    }
}

impl Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Bound::to_string).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Bounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Bounds, String> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Scaling;

    fn base() -> Figures {
        Figures {
            pod_hours: 20.0,
            peak_replicas: 10,
            scaling: Some(Scaling {
                missing_pod_hours: 0.5,
                above_target_seconds: 120.0,
                ..Scaling::default()
            }),
            ..Figures::default()
        }
    }

    #[test]
    fn limits_are_figures_differences_or_percentages() {
        let limit =
            |text: &str| text.parse::<Bound>().expect("a bound").limit(&base()).expect("a limit");
        assert_eq!(limit("missing<=0.1"), 0.1);
        assert_eq!(limit("missing<=+0"), 0.5);
        assert_eq!(limit("missing<=-0.2"), 0.3);
        assert_eq!(limit("pod-hours <= +5%"), 21.0);
        assert_eq!(limit("pod-hours<=-10%"), 18.0);
        assert_eq!(limit("above<=5m"), 300.0);
        assert_eq!(limit("above<=+1m30s"), 210.0);
        assert_eq!(limit("peak<=40"), 40.0);
    }

    #[test]
    fn a_bound_is_kept_at_its_limit() {
        let bounds: Bounds = "pod-hours<=+0%,peak<=10,above<=+0s".parse().expect("bounds");
        let base = base();
        assert!(bounds.are_kept(&base, &base));
        assert!(!bounds.are_kept(&Figures { peak_replicas: 11, ..base }, &base));
        assert!(!bounds.are_kept(&Figures { pod_hours: 20.01, ..base }, &base));
        let excess = bounds.0[0].excess(&Figures { pod_hours: 22.0, ..base }, &base);
        let excess = excess.expect("a figure");
        assert!((excess - 2.0).abs() < 1e-9, "{excess}");
    }

    #[test]
    fn a_figure_that_does_not_exist_keeps_no_bound() {
        let without = Figures { scaling: None, ..base() };
        for text in ["missing<=1", "missing<=+0", "cost<=+5%", "oom-kills<=0"] {
            let bound: Bound = text.parse().expect("a bound");
            assert!(!bound.is_kept(&without, &base()) && !bound.is_kept(&without, &without));
        }
        let relative: Bound = "missing<=+1".parse().expect("a bound");
        assert!(!relative.is_kept(&base(), &without), "there is nothing to compare with");
        assert!(relative.broken(&without, &base()).starts_with("missing -, limit 1.5"));
    }

    #[test]
    fn bounds_are_written_as_they_are_read() {
        for text in ["missing<=0.1,above<=5m", "pod-hours<=+5%,missing<=-0.25", "peak<=40"] {
            assert_eq!(text.parse::<Bounds>().expect("bounds").to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        let error = |text: &str| text.parse::<Bounds>().expect_err("a mistake");
        assert!(error("mising<=1").contains("did you mean `missing`?"), "{}", error("mising<=1"));
        assert!(error("latency<=1").contains("the figures are pod-hours, "));
        assert!(error("missing<1").contains("expected FIGURE<=LIMIT"));
        assert!(error("above<=5").contains("such as 5m, +5m or +5%"), "{}", error("above<=5"));
        assert!(error("pod-hours<=5%").contains("a percentage requires a sign: +5%"));
        for wrong in ["missing<=", "missing<=inf", "missing<=+-1", "missing<=NaN", "peak<=+e%"] {
            assert!(error(wrong).contains("expected a limit"), "{}", error(wrong));
        }
    }
}
