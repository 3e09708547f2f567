//! The rules, one file for each.

mod ambiguous_selector;
mod memory_never_scales_down;
mod min_zero_without_gate;
mod missing_request;
mod policy_never_binds;
mod replicas_beside_hpa;
mod selector_matches_other_pods;
mod tolerance_hides_step;
mod vpa_on_hpa_metric;
mod window_longer_than_period;

use super::Rule;

/// The rule for several HPAs of the same pods, which other commands use as well.
pub const AMBIGUOUS_SELECTOR: &Rule = &ambiguous_selector::RULE;

/// All rules, in the order of their ids.
pub const RULES: &[&Rule] = &[
    AMBIGUOUS_SELECTOR,
    &memory_never_scales_down::RULE,
    &min_zero_without_gate::RULE,
    &missing_request::RULE,
    &policy_never_binds::RULE,
    &replicas_beside_hpa::RULE,
    &selector_matches_other_pods::RULE,
    &tolerance_hides_step::RULE,
    &vpa_on_hpa_metric::RULE,
    &window_longer_than_period::RULE,
];
