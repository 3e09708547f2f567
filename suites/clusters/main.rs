//! The tests on real clusters, which take minutes: `cargo test --features e2e --test clusters`. The
//! argument `-- leaks::` selects the suite `leaks`.

mod api_server;
mod containers;
mod custom;
mod e2e;
mod kubeconfig;
mod leaks;
mod metrics_server;
mod planted;
#[path = "../support/mod.rs"]
mod support;
mod vpa_cluster;

use std::process::ExitCode;

use support::trials::Order::{Alone, OneAtATime};
use support::trials::{self, Entry};

const SUITES: [Entry; 9] = [
    ("e2e", Alone, e2e::add_tests),
    ("vpa_cluster", OneAtATime, vpa_cluster::add_tests),
    ("api_server", Alone, api_server::add_tests),
    ("planted", OneAtATime, planted::add_tests),
    ("leaks", Alone, leaks::add_tests),
    ("kubeconfig", OneAtATime, kubeconfig::add_tests),
    ("metrics_server", Alone, metrics_server::add_tests),
    ("containers", Alone, containers::add_tests),
    ("custom", OneAtATime, custom::add_tests),
];

fn main() -> ExitCode {
    leaks::panic_if_asked();
    trials::run(&SUITES)
}
