//! Every tolerance of a wall-clock run, with its unit and its reason. The precision of observations
//! is not listed here: it depends on the kind of cluster (`engine::cluster::Observability`).

use crate::model::time::Span;

/// Declares constants. Their documentation and values are also the table in `docs/wall-clock.md`.
macro_rules! tolerances {
    ($($(#[doc = $reason:literal])+ $name:ident: $type:ty = $value:expr;)+) => {
        $($(#[doc = $reason])+ pub(super) const $name: $type = $value;)+

        #[cfg(test)]
        fn rows() -> String {
            let rows = [$((stringify!($name), format!("{}", $name), concat!($($reason),+)),)+];
            rows.map(|(name, value, why)| format!("| `{name}` | {value} |{why} |\n")).concat()
        }
    };
}

tolerances! {
    /// Sync periods, as 1 / n. A reconcile may be this much earlier or later than due: the model
    /// does not know when the previous one left the work queue.
    TIMING_SLACK_DIVISOR: i64 = 3;
    /// Upper bound of that slack, however long the sync period is.
    MAX_TIMING_SLACK: Span = Span::from_secs(1);
    /// Timing slacks after which a reconcile that has not come counts as missing.
    MISSING_AFTER_SLACKS: i64 = 9;
    /// Timing slacks within which requests may continue a reconcile that seemed to be over.
    RESUME_WITHIN_SLACKS: i64 = 2;
    /// The time that the controller's watch may take to deliver an edit of the HPA.
    WATCH_DELAY: Span = Span::from_millis(100);
    /// The time to wait for the remaining requests of a reconcile that has begun.
    REQUEST_TIMEOUT: Span = Span::from_secs(10);
    /// Upper bound of the intermediate states that are tried for each order in which the objects of
    /// a change in flight may become visible.
    MAX_IN_FLIGHT_STATES: usize = 128;
    /// Expected reconciles that may be missing at the end without a note: the last one may be late.
    MISSING_WITHOUT_NOTE: usize = 1;
    /// Expected reconciles, as 1 / n. If more than this part is missing at the end, there is no
    /// verdict: the scenario may not have been exercised.
    MAX_MISSING_DIVISOR: usize = 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_each_tolerance() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wall-clock.md");
        let text = std::fs::read_to_string(path).expect("the document can be read");
        let head = "| tolerance | value | unit and reason |
|---|---|---|
";
        let (before, rest) = text.split_once(head).expect("the head of the table");
        let after: Vec<&str> = rest.lines().skip_while(|line| line.starts_with('|')).collect();
        let written = format!(
            "{before}{head}{}{}
",
            rows(),
            after.join(
                "
"
            )
        );
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, written).expect("the document can be written");
            return;
        }
        assert_eq!(text, written, "run `UPDATE_DOCS=1 cargo test --lib tolerances`");
    }
}
