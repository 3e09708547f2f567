//! `kube-lockstep schema`.

use super::exit;
use super::output::show;
use kube_lockstep_scenario as scenario;

pub(super) fn run() -> anyhow::Result<u8> {
    let mut text = serde_json::to_string_pretty(&scenario::schema())?;
    text.push('\n');
    show(&text)?;
    Ok(exit::CONFORMS)
}
