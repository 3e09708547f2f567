//! How far a cluster's clock is from this machine's.
//!
//! An API server dates its answers in whole seconds. Where one second becomes the next, its clock
//! is known as exactly as the two answers are apart.

use std::time::Duration;

use axum::http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::time::sleep;

/// The next answer is asked for so much later.
const STEP: Duration = Duration::from_millis(20);

/// A second comes to its end within so many steps, also if answers take their time.
const STEPS: usize = 200;

/// What an answer shows: when it was asked for, when it came, and its date.
#[derive(Clone, Copy)]
struct Answer {
    sent: Timestamp,
    came: Timestamp,
    date: Timestamp,
}

/// How far the clocks may be apart: ours and the cluster's.
///
/// # Errors
/// If the API server does not answer, or does not date its answers.
pub(crate) async fn apart(client: &Client) -> Result<SignedDuration, String> {
    let mut before: Option<Answer> = None;
    for _ in 0..STEPS {
        let answer = ask(client).await?;
        if let Some(apart) = before.and_then(|before| between(before, answer)) {
            return Ok(apart);
        }
        before = Some(answer);
        sleep(STEP).await;
    }
    Err("the API server's clock stands still".to_owned())
}

async fn ask(client: &Client) -> Result<Answer, String> {
    let request = Request::get("/version").body(Body::empty()).map_err(|it| it.to_string())?;
    let sent = Timestamp::now();
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    let came = Timestamp::now();
    let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let date = date.ok_or("the API server does not date its answers")?.timestamp();
    Ok(Answer { sent, came, date })
}

/// The most that they can be apart, if a second came to its end between two answers.
fn between(before: Answer, after: Answer) -> Option<SignedDuration> {
    if before.date >= after.date {
        return None;
    }
    // Its clock came to this between the two.
    let then = after.date;
    let ahead = then.duration_since(before.sent).abs();
    let behind = then.duration_since(after.came).abs();
    Some(ahead.max(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_skew_is_measured_when_a_second_begins() {
        let at = |millis: i64| Timestamp::from_millisecond(1_000_000 + millis).expect("a time");
        let answer = |sent: i64, came: i64, date: i64| Answer {
            sent: at(sent),
            came: at(came),
            date: at(date),
        };
        assert_eq!(between(answer(100, 110, 0), answer(130, 140, 0)), None);
        let same = between(answer(970, 980, 0), answer(1000, 1010, 1000));
        assert_eq!(same, Some(SignedDuration::from_millis(30)));
        let ahead = between(answer(470, 480, 0), answer(500, 510, 1000));
        assert_eq!(ahead, Some(SignedDuration::from_millis(530)));
        let behind = between(answer(1470, 1480, 0), answer(1500, 1510, 1000));
        assert_eq!(behind, Some(SignedDuration::from_millis(510)));
    }
}
