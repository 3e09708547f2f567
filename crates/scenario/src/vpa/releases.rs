//! Ranges of releases of the Vertical Pod Autoscaler: `vpa-1.8`, `>=vpa-1.8`, `<=vpa-1.7`.

use schemars::{Schema, json_schema};

use crate::diagnostic::Diagnostic;
use crate::releases::ReleaseRange;
use crate::text::{Form, malformed, text_only};
use kube_autoscaler_models::rules::VpaRelease;

/// The releases of the VPA that a scenario or an expectation applies to.
pub type VpaReleaseRange = ReleaseRange<VpaRelease>;

/// A range of releases of the Vertical Pod Autoscaler.
impl Form for VpaReleaseRange {
    type Value = VpaReleaseRange;
    const NAME: &'static str = "\0releases of the vpa";
    const EXPECTED: &'static str = "a range of releases such as \">=vpa-1.8\"";
    const FALLBACK: &'static str = ">=vpa-0.10";
    const SCHEMA_NAME: &'static str = "VpaReleasesText";

    fn read(text: &str) -> Result<VpaReleaseRange, Diagnostic> {
        let parse = |release: &str| {
            let release = release.trim();
            release.parse::<VpaRelease>().map_err(|why| {
                let prefixed = format!("vpa-{release}");
                malformed(why).hint(match prefixed.parse::<VpaRelease>() {
                    Ok(_) => format!("did you mean {}?", text.replace(release, &prefixed)),
                    Err(_) => format!("for example >={}", VpaRelease::NEWEST),
                })
            })
        };
        let text = text.trim();
        if let Some(from) = text.strip_prefix(">=") {
            return Ok(VpaReleaseRange { from: Some(parse(from)?), to: None });
        }
        if let Some(to) = text.strip_prefix("<=") {
            return Ok(VpaReleaseRange { from: None, to: Some(parse(to)?) });
        }
        let only = Some(parse(text)?);
        Ok(VpaReleaseRange { from: only, to: only })
    }
    fn write(value: &VpaReleaseRange) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "releases",
            "description": "The releases of the Vertical Pod Autoscaler on which the requirement \
                            holds: vpa-1.8, >=vpa-1.8, <=vpa-1.7.",
            "type": "string",
            "pattern": r"^\s*(>=|<=)?\s*vpa-[01]\.[0-9]+\s*$",
            "examples": [">=vpa-1.8", "vpa-1.7"],
        })
    }
}

text_only!(VpaReleaseRange);
