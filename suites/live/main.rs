//! The tests on upstream's code in virtual time, which Go builds, and the tests that start other
//! programs. Tests that start cargo or a browser, or that build older releases, are ignored unless
//! `--include-ignored` is given.

mod checkout;
mod ci;
mod conversion;
mod engines;
mod fuzz;
mod hpa;
mod html;
mod library;
mod proxies;
#[path = "../support/mod.rs"]
mod support;
mod torture;
mod vpa;
mod vpa_checkout;
mod vpa_updater;

use std::process::ExitCode;

use support::trials::Order::{OneAtATime, Together};
use support::trials::{self, Entry};

const SUITES: [Entry; 13] = [
    ("hpa", Together, hpa::add_tests),
    ("vpa", Together, vpa::add_tests),
    ("conversion", Together, conversion::add_tests),
    ("engines", Together, engines::add_tests),
    ("fuzz", Together, fuzz::add_tests),
    ("html", Together, html::add_tests),
    ("proxies", Together, proxies::add_tests),
    ("torture", Together, torture::add_tests),
    ("ci", Together, ci::add_tests),
    ("library", Together, library::add_tests),
    ("checkout", OneAtATime, checkout::add_tests),
    ("vpa_checkout", OneAtATime, vpa_checkout::add_tests),
    ("vpa_updater", OneAtATime, vpa_updater::add_tests),
];

fn main() -> ExitCode {
    // This program is also the broken engine of some tests.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let engine = proxies::as_engine(&arguments).or_else(|| torture::as_engine(&arguments));
    engine.unwrap_or_else(|| trials::run(&SUITES))
}
