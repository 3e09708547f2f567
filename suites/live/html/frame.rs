//! Pages in a browser, in a frame of any width: a browser's windows are at least 500 pixels wide.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::Failed;

use super::{Page, WAIT};

/// The height of frames, in pixels.
pub(super) const HEIGHT: u32 = 1000;

/// Light or dark mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Theme {
    Light,
    Dark,
}

/// A page in a frame.
pub(super) struct Frame<'a> {
    pub(super) browser: &'a str,
    pub(super) page: &'a Page,
    /// In pixels.
    pub(super) width: u32,
    pub(super) theme: Theme,
    /// A script that runs after the page is complete, with the page's `document` as `page` and its
    /// window as `view`. What it stores in `seen` is returned.
    pub(super) script: String,
}

/// The contents of a frame.
pub(super) struct Shown {
    _folder: tempfile::TempDir,
    /// A picture of the window.
    pub(super) picture: PathBuf,
    /// The value that the script stored in `seen`.
    pub(super) seen: serde_json::Value,
}

impl Frame<'_> {
    pub(super) fn show(&self) -> Result<Shown, Failed> {
        let Frame { browser, page, width, theme, script } = self;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("frame.html");
        let source = page.path.display();
        fs::write(
            &path,
            format!(
                "<!DOCTYPE html><body style='margin: 0'>\
                 <iframe src='file://{source}' width={width} height={HEIGHT} \
                 style='border: 0; display: block'></iframe><script>\n\
                 const frame = document.querySelector('iframe');\n\
                 frame.addEventListener('load', () => setTimeout(() => {{\n\
                 const [page, view, seen] = [frame.contentDocument, frame.contentWindow, {{}}];\n\
                 try {{ {script} }} catch (error) {{ seen.error = String(error); }}\n\
                 document.body.dataset.seen = encodeURIComponent(JSON.stringify(seen));\n\
                 }}, 1000));</script></body>"
            ),
        )?;
        let picture = folder.path().join("picture.png");
        let scheme = if *theme == Theme::Dark { 0 } else { 1 };
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"])
            .args(["--hide-scrollbars", "--force-device-scale-factor=1", WAIT, "--dump-dom"])
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!("--window-size={},{HEIGHT}", (*width).max(500)))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}", path.display()))
            .output()?;
        let dom = String::from_utf8(output.stdout)?;
        let seen = dom.split_once("data-seen=\"").and_then(|(_, rest)| rest.split_once('"'));
        let (seen, _) = seen.ok_or_else(|| format!("the script did not end: {dom}"))?;
        let seen: serde_json::Value = serde_json::from_str(&decoded(seen)?)?;
        match seen.get("error") {
            Some(error) => Err(format!("the script failed: {error}").into()),
            None => Ok(Shown { _folder: folder, picture, seen }),
        }
    }
}

/// A text without percent signs of `encodeURIComponent`.
fn decoded(text: &str) -> Result<String, Failed> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let (code, after) = after.split_at_checked(2).ok_or("an incomplete code")?;
        bytes.push(u8::from_str_radix(code, 16)?);
        rest = after;
    }
    bytes.extend(rest.bytes());
    Ok(String::from_utf8(bytes)?)
}
