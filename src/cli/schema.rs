//! `kube-lockstep schema`.

use std::io::{self, Write};

use super::exit;
use crate::scenario;

pub(super) fn run() -> anyhow::Result<u8> {
    let mut text = serde_json::to_string_pretty(&scenario::schema())?;
    text.push('\n');
    io::stdout().write_all(text.as_bytes())?;
    Ok(exit::CONFORMS)
}
