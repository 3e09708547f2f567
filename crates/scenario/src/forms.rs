//! The list of all text forms, for the decoder.

use super::action::Share;
use super::podset::PodSet;
use super::releases::ReleaseRange;
use super::text::{
    Amount, AnyQuantity, Duration, DurationOrNever, End, Form, Instant, NumberText,
    PercentBoundsText, PercentText, PositiveDuration, QuantityBounds, QuantityText, SignalText,
    SignedDuration, Status, UnitText,
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
    const fn new<F: Form>() -> FormCheck {
        FormCheck { name: F::NAME, check: check::<F>, fallback: F::FALLBACK, or_map: F::OR_MAP }
    }

    /// The form with this name.
    pub(crate) fn named(name: &str) -> Option<&'static FormCheck> {
        static ALL: [FormCheck; 23] = [
            FormCheck::new::<Duration>(),
            FormCheck::new::<PositiveDuration>(),
            FormCheck::new::<SignedDuration>(),
            FormCheck::new::<DurationOrNever>(),
            FormCheck::new::<Instant>(),
            FormCheck::new::<End>(),
            FormCheck::new::<AnyQuantity>(),
            FormCheck::new::<Amount>(),
            FormCheck::new::<QuantityText>(),
            FormCheck::new::<SignalText>(),
            FormCheck::new::<PodSet>(),
            FormCheck::new::<Share>(),
            FormCheck::new::<ReleaseRange>(),
            FormCheck::new::<NumberText>(),
            FormCheck::new::<Status>(),
            FormCheck::new::<VpaReleaseRange>(),
            FormCheck::new::<ExpectedAmountText>(),
            FormCheck::new::<PercentText>(),
            FormCheck::new::<PercentBoundsText>(),
            FormCheck::new::<QuantityBounds>(),
            FormCheck::new::<UnitText>(),
            FormCheck::new::<ApiTime>(),
            FormCheck::new::<VpaReleaseText>(),
        ];
        ALL.iter().find(|form| form.name == name)
    }
}

fn check<F: Form>(text: &str) -> Result<(), Diagnostic> {
    F::read(text).map(drop)
}
