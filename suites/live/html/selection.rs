//! The selection of a tick by mouse and keys, in a browser.

use libtest_mimic::Failed;
use serde_json::json;

use super::frame::{Frame, Theme};
use super::{FIRST, kube_lockstep, page, recommender};

/// Functions that act as a user does.
const ACTIONS: &str = "
    const charts = page.querySelector('.charts');
    const head = () => page.querySelector('.panel .head b').textContent;
    const axis = () => page.querySelector('.time').getBoundingClientRect();
    const at = (percent) => ({
      clientX: axis().left + axis().width * percent / 100, bubbles: true, pointerType: 'mouse',
    });
    const move = (percent) => charts.dispatchEvent(new view.PointerEvent('pointermove', at(percent)));
    const click = (percent) => charts.dispatchEvent(new view.MouseEvent('click', at(percent)));
    const press = (key) =>
      page.activeElement.dispatchEvent(new view.KeyboardEvent('keydown', { key, bubbles: true }));
    const buttons = () => [...page.querySelectorAll('.panel .head button')];
    seen.heads = [];
    const note = () => seen.heads.push(head());
";

/// A click pins a tick, so that the mouse can be moved to the panel; Esc releases it.
pub(super) fn pins(browser: &str) -> Result<(), Failed> {
    let page = page(&["predict", FIRST], "--html", "")?;
    let script = format!(
        "{ACTIONS}
        move(25); note();
        move(75); note();
        click(50); note();
        seen.unpin = !buttons()[2].hidden;
        move(25); note();
        buttons()[1].click(); note();
        move(75); note();
        click(25); note();
        move(75); note();
        press('Escape'); note();
        move(75); note();
        click(75); note();
        // The second click on the same tick releases it.
        click(75);
        move(50); note();
        click(50);
        press('ArrowRight'); note();
        move(25); note();
        buttons()[2].click();
        seen.unpinned = buttons()[2].hidden;
        move(25); note();"
    );
    let frame = Frame { browser, page: &page, width: 1280, theme: Theme::Light, script };
    let seen = frame.show()?.seen;
    // 65 ticks, and one period after the last one.
    let [quarter, half, most] = ["tick 17", "tick 34", "tick 50"];
    let expected = [
        quarter, most, half, half, "tick 35", "tick 35", quarter, quarter, quarter, most, most,
        half, "tick 35", "tick 35", quarter,
    ];
    assert_eq!(seen["heads"], json!(expected));
    assert_eq!((&seen["unpin"], &seen["unpinned"]), (&json!(true), &json!(true)));
    Ok(())
}

/// A tick of a long run without steps has its values, and a button for the nearest one with steps.
pub(super) fn between_steps(browser: &str) -> Result<(), Failed> {
    let page = page(&[&["predict"], recommender::EXAMPLE].concat(), "--html", "")?;
    let script = format!(
        "{ACTIONS}
        const why = () => page.querySelector('.panel .why');
        seen.steps = [];
        move(50.3);
        // From tick to tick, until one has no steps.
        for (let i = 0; i < 50 && why().querySelector('ol'); i += 1) buttons()[1].click();
        seen.head = page.querySelector('.panel .head').textContent;
        seen.why = why().textContent;
        why().querySelector('button').click();
        seen.has = Boolean(why().querySelector('ol'));"
    );
    let frame = Frame { browser, page: &page, width: 1280, theme: Theme::Light, script };
    let seen = frame.show()?.seen;
    let text = |key: &str| seen[key].as_str().unwrap_or_default().to_owned();
    let (head, why) = (text("head"), text("why"));
    assert!(head.contains("t=9") && head.contains("4d "), "{head}");
    assert!(head.contains("target of hamster cpu 920m, memory "), "{head}");
    assert!(why.starts_with("Usage: hamster cpu ") && why.contains("hamster memory 2"), "{why}");
    let at = head.split_once("t=").map(|(_, rest)| rest).ok_or("no time")?;
    let at = at.split_once("4d ").map(|(at, _)| at).ok_or("no days")?;
    assert!(why.contains(&format!("kube-lockstep explain --at {at} does")), "{why}");
    assert_eq!(seen["has"], json!(true), "the button selects a tick with steps");
    // The same tick exists at this time.
    let explain = ["explain", "-f", "examples/hamster", "--at", at];
    let explained = kube_lockstep(&[&explain, &recommender::EXAMPLE[2..]].concat())?;
    let explained = String::from_utf8(explained.stdout)?;
    let number = head.split_once("tick ").and_then(|(_, rest)| rest.split_once("t="));
    let (number, _) = number.ok_or("no number")?;
    assert!(explained.contains(&format!("tick {number} of 11520, t={at}")), "{explained}");
    Ok(())
}
