//! Limits of the rate of an object's events.
//!
//! Upstream: golang.org/x/time/rate, Limiter; on the oldest releases github.com/juju/ratelimit,
//! Bucket

use crate::rules::EventLimit;
use crate::time::{Span, Time};

/// The number of events that may be sent at once.
const BURST: u32 = 25;

/// The allowed rate, in events per second. Upstream has it in single precision, so that a token
/// takes slightly less than five minutes.
const RATE: f32 = 1.0 / 300.0;

/// A limit on the rate of events.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    limit: EventLimit,
    tokens: f64,
    /// The time of the first event.
    begin: Time,
    /// The time of the last accepted event; for whole tokens, the last number of intervals since
    /// the beginning.
    last: Time,
    intervals: i64,
}

impl TokenBucket {
    /// A full bucket, for an object whose first event occurs now.
    #[must_use]
    pub fn new(limit: EventLimit, now: Time) -> TokenBucket {
        TokenBucket { limit, tokens: f64::from(BURST), begin: now, last: now, intervals: 0 }
    }

    /// Takes a token. Returns false if there is none, so that the event is not sent.
    pub fn try_accept(&mut self, now: Time) -> bool {
        match self.limit {
            EventLimit::Unlimited => true,
            EventLimit::WholeTokens => self.take_available(now),
            EventLimit::Tokens => self.allow(now),
        }
    }

    /// Upstream: Limiter.AllowN
    fn allow(&mut self, now: Time) -> bool {
        let passed = seconds((now - self.last).max(Span::ZERO));
        let rate = f64::from(RATE);
        let tokens = (self.tokens + passed * rate).min(f64::from(BURST)) - 1.0;
        let wait = (-tokens / rate * 1e9) as i64;
        let accepted = tokens >= 0.0 || wait <= 0;
        if accepted {
            self.last = now;
            self.tokens = tokens;
        }
        accepted
    }

    /// Upstream: Bucket.TakeAvailable
    fn take_available(&mut self, now: Time) -> bool {
        let interval = (1e9 / f64::from(RATE)) as i64;
        let passed = (now - self.begin).0 / interval;
        if self.tokens < f64::from(BURST) {
            let filled = self.tokens + (passed - self.intervals) as f64;
            self.tokens = filled.min(f64::from(BURST));
            self.intervals = passed;
        }
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }
}

/// As `time.Duration.Seconds` in Go.
fn seconds(span: Span) -> f64 {
    let (whole, rest) = (span.0 / 1_000_000_000, span.0 % 1_000_000_000);
    whole as f64 + rest as f64 / 1e9
}
