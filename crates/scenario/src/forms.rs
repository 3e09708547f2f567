//! The list of all text forms, for the decoder.

use super::action::Share;
use super::podset::PodSet;
use super::releases::ReleaseRange;
use super::text::{
    Amount, AnyQuantity, Duration, DurationOrNever, End, Form, Instant, NumberText,
    PercentBoundsText, PercentText, PositiveDuration, QuantityBounds, QuantityText, SignalText,
    Status, UnitText,
};
use super::vpa::raw::VpaReleaseText;
use super::vpa::{ApiTime, ExpectedAmountText, VpaReleaseRange};
use crate::diagnostic::Diagnostic;

/// The part of a form that the decoder uses.
pub(super) struct FormCheck {
    name: &'static str,
    /// Returns an error for a text that does not match the form.
    pub check: fn(&str) -> Result<(), Diagnostic>,
    /// A valid text that replaces a malformed one.
    pub fallback: &'static str,
    /// True if a map is allowed in place of the text.
    pub(super) or_map: bool,
}

impl FormCheck {
    const fn of<F: Form>() -> FormCheck {
        FormCheck { name: F::NAME, check: check::<F>, fallback: F::FALLBACK, or_map: F::OR_MAP }
    }

    /// The form with this name.
    pub(crate) fn named(name: &str) -> Option<&'static FormCheck> {
        static ALL: [FormCheck; 22] = [
            FormCheck::of::<Duration>(),
            FormCheck::of::<PositiveDuration>(),
            FormCheck::of::<DurationOrNever>(),
            FormCheck::of::<Instant>(),
            FormCheck::of::<End>(),
            FormCheck::of::<AnyQuantity>(),
            FormCheck::of::<Amount>(),
            FormCheck::of::<QuantityText>(),
            FormCheck::of::<SignalText>(),
            FormCheck::of::<PodSet>(),
            FormCheck::of::<Share>(),
            FormCheck::of::<ReleaseRange>(),
            FormCheck::of::<NumberText>(),
            FormCheck::of::<Status>(),
            FormCheck::of::<VpaReleaseRange>(),
            FormCheck::of::<ExpectedAmountText>(),
            FormCheck::of::<PercentText>(),
            FormCheck::of::<PercentBoundsText>(),
            FormCheck::of::<QuantityBounds>(),
            FormCheck::of::<UnitText>(),
            FormCheck::of::<ApiTime>(),
            FormCheck::of::<VpaReleaseText>(),
        ];
        ALL.iter().find(|form| form.name == name)
    }
}

fn check<F: Form>(text: &str) -> Result<(), Diagnostic> {
    F::read(text).map(drop)
}
