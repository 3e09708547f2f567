//! The difference between the clocks of a cluster and this machine.
//!
//! The `Date` header of the API server's responses has a precision of one second. When the second
//! changes between two responses, the server's clock is known as precisely as the time between
//! these responses.

use axum::http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::time::sleep;

use crate::cluster::timeouts::CLOCK_POLL_INTERVAL;

/// The maximum number of responses, during which the second is certain to change.
const MAX_ANSWERS: usize = 200;

/// The times of a response: the request, the arrival, and its `Date` header.
#[derive(Clone, Copy)]
struct Answer {
    sent: Timestamp,
    arrived: Timestamp,
    date: Timestamp,
}

/// The largest possible difference between the clocks.
///
/// # Errors
/// If the API server does not answer, or does not date its answers.
pub(crate) async fn measure(client: &Client) -> Result<SignedDuration, String> {
    let mut before: Option<Answer> = None;
    for _ in 0..MAX_ANSWERS {
        let answer = ask(client).await?;
        if let Some(skew) = before.and_then(|before| between(before, answer)) {
            return Ok(skew);
        }
        before = Some(answer);
        sleep(CLOCK_POLL_INTERVAL).await;
    }
    Err("the API server's clock does not advance".to_owned())
}

async fn ask(client: &Client) -> Result<Answer, String> {
    let request = Request::get("/version").body(Body::empty()).map_err(|it| it.to_string())?;
    let sent = Timestamp::now();
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    let arrived = Timestamp::now();
    let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let date = date.ok_or("the API server's responses have no Date header")?.timestamp();
    Ok(Answer { sent, arrived, date })
}

/// The largest possible difference, if the second changed between two answers.
fn between(before: Answer, after: Answer) -> Option<SignedDuration> {
    if before.date >= after.date {
        return None;
    }
    // The API server's clock reached this second between the two responses.
    let then = after.date;
    let ahead = then.duration_since(before.sent).abs();
    let behind = then.duration_since(after.arrived).abs();
    Some(ahead.max(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_skew_is_measured_when_a_second_begins() {
        let at = |millis: i64| Timestamp::from_millisecond(1_000_000 + millis).expect("a time");
        let answer = |sent: i64, arrived: i64, date: i64| Answer {
            sent: at(sent),
            arrived: at(arrived),
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
