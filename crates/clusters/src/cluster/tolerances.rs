//! Every tolerance of a wall-clock run that can change a verdict, with its unit and its reason:
//! those of the comparison (`run::wall_clock`), and those of the observation of a cluster.
//! `timeouts` has the times after which there is no verdict.

use std::time::Duration;

use jiff::SignedDuration;

use kube_autoscaler_models::time::Span;

/// Declares constants. Their documentation and values are also the table in `docs/wall-clock.md`.
macro_rules! tolerances {
    ($($(#[doc = $reason:literal])+ $name:ident: $type:ty = $value:expr;)+) => {
        $($(#[doc = $reason])+ pub(crate) const $name: $type = $value;)+

        #[cfg(test)]
        fn rows() -> String {
            use tests::Text;

            let rows = [$((stringify!($name), $name.text(), concat!($($reason),+)),)+];
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
    /// Timing slacks after which a reconcile that has not begun counts as missing.
    MISSING_AFTER_SLACKS: i64 = 9;
    /// Timing slacks within which requests may continue a reconcile that seemed to be over.
    RESUME_WITHIN_SLACKS: i64 = 2;
    /// The time that the controller's watch may take to deliver an edit of the HPA.
    WATCH_DELAY: Span = Span::from_millis(100);
    /// The time to wait for the remaining requests of a reconcile that has begun.
    RECONCILE_TIMEOUT: Span = Span::from_secs(10);
    /// Upper bound of the intermediate states that are tried for each order in which the objects of
    /// a change in flight may become visible.
    MAX_IN_FLIGHT_STATES: usize = 128;
    /// Expected reconciles that may be missing at the end without a note: the last one may be late.
    MISSING_WITHOUT_NOTE: usize = 1;
    /// Expected reconciles, as 1 / n. If more than this part is missing at the end, there is no
    /// verdict: the scenario may not have been exercised.
    MAX_MISSING_DIVISOR: usize = 3;
    /// Attempts at a scenario, including the first, before it is reported without a verdict.
    MAX_ATTEMPTS: usize = 4;
    /// Scenarios whose sync period would be shorter are skipped: it is too short for the reconciles
    /// of many HPAs.
    SHORTEST_SYNC_PERIOD: Span = Span::from_millis(200);
    /// Scenarios that edit the HPA closer than this to a reconcile without requests are skipped:
    /// either may happen first, and the order cannot be observed.
    SHORTEST_EDIT_DISTANCE: Span = Span::from_millis(300);
    /// A run of the VPA recommender that begins sooner after a change of its objects has no
    /// verdict: its caches may not contain the change.
    RECOMMENDER_CACHE_LAG: Duration = Duration::from_millis(250);
    /// The time until the recommender runs for the first time, in addition to its interval: it
    /// starts, and lists its objects. A later first run counts as missing.
    RECOMMENDER_START: Duration = Duration::from_secs(30);
    /// The time by which a condition or a checkpoint may be older or newer than the requests of the
    /// run: the API stores whole seconds.
    RECOMMENDER_CLOCK: SignedDuration = SignedDuration::from_secs(1);
    /// Intervals of the recommender, as 1 / n, for which each of its runs is given time to write.
    RECOMMENDER_RUN_DIVISOR: u32 = 2;
    /// Quarters of the recommender's interval for which a run is given time to write if it has
    /// written less than predicted.
    RECOMMENDER_LATE_WRITE_QUARTERS: u32 = 3;
    /// Intervals of the recommender after which a run that has not begun is missing.
    RECOMMENDER_MISSING_INTERVALS: u32 = 4;
    /// Scenarios whose recommender would run more often are skipped: its runs would overlap with
    /// changes.
    SHORTEST_RECOMMENDER_INTERVAL: Span = Span::from_secs(1);
    /// The number of attempts of a VPA scenario that must diverge before its verdict is `diverges`:
    /// a busy machine may delay one write.
    RECOMMENDER_DIVERGENCES: usize = 2;
    /// The time that the caches of controllers may take to contain a change that is complete.
    CACHE_LAG: Duration = Duration::from_millis(40);
    /// Sync periods, as 1 / n. A reconcile without a request for this long counts as over.
    SILENCE_DIVISOR: u32 = 5;
    /// Lower bound of that silence.
    MIN_SILENCE: Duration = Duration::from_millis(50);
    /// Upper bound of that silence.
    MAX_SILENCE: Duration = Duration::from_millis(500);
    /// Silences, as 1 / n. While a component does not respond for longer than this, silence does
    /// not end a reconcile.
    STALLED_SILENCE_DIVISOR: i64 = 2;
    /// Sync periods, as 1 / n. Requests that are further apart belong to two reconciles.
    RECONCILE_DISTANCE_DIVISOR: i64 = 2;
    /// The time in which surplus events are awaited after the last expected one.
    SURPLUS_EVENT_TIMEOUT: Duration = Duration::from_millis(200);
    /// A component that responds faster than this has not stalled.
    SHORTEST_STALL: Duration = Duration::from_millis(50);
    /// The measured time between two reconciles of an existing cluster may exceed its sync period
    /// by this: the duration of a reconcile, and the delay of the work queue.
    MAX_MEASURED_DELAY: Span = Span::from_millis(60);
    /// Sync periods, as 1 / n. Long sync periods may be exceeded by this part.
    MEASURED_DELAY_DIVISOR: i64 = 50;
    /// Requests of an existing cluster's controller that are further apart belong to two
    /// reconciles, while its sync period is measured.
    SAME_RECONCILE: Duration = Duration::from_millis(150);
    /// The error of times in the audit log: the clocks of two processes on one machine, and the
    /// time from a reading of the clock to a request.
    AUDIT_LOG_UNCERTAINTY: Span = Span::from_millis(4);
    /// The time that an event may take to be in the audit log: the controller writes the events of
    /// all scenarios one after the other.
    AUDIT_LOG_EVENT_DELAY: Span = Span::from_secs(20);
    /// The error of times observed by watches: the time from a write to its report.
    WATCH_UNCERTAINTY: Span = Span::from_millis(25);
    /// The time that another watch may take to report a request of the same reconcile: each kind of
    /// object has its own watch.
    WATCH_LINGER: Span = Span::from_millis(50);
    /// The time that an event may take to be reported by a watch.
    WATCH_EVENT_DELAY: Span = Span::from_secs(30);
    /// The largest difference between the clocks of an existing cluster and this machine. The
    /// measured difference is added to the error of observed times.
    LONGEST_CLOCK_SKEW: SignedDuration = SignedDuration::from_millis(500);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value as it is in the table.
    pub(super) trait Text {
        fn text(&self) -> String;
    }

    macro_rules! text {
        ($($type:ty: |$value:ident| $text:expr;)+) => {
            $(impl Text for $type {
                fn text(&self) -> String {
                    let $value = self;
                    $text.to_string()
                }
            })+
        };
    }

    text! {
        Span: |span| span;
        Duration: |span| Span(span.as_nanos() as i64);
        SignedDuration: |span| Span(span.as_nanos() as i64);
        i64: |number| number;
        u32: |number| number;
        usize: |number| number;
    }

    #[test]
    fn the_document_lists_each_tolerance() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wall-clock.md");
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
        assert_eq!(text, written, "run `cargo xtask docs --clusters`");
    }
}
