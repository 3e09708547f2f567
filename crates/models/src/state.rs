//! The state of a run, for searches that merge equal states.
//!
//! A state is a list of words with everything that the future of a run depends on, relative to the
//! present: two runs with equal words continue in the same way, if the same happens to both.

use crate::time::{Span, Time};

/// What a state may leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateScope {
    /// True if the specs of HPAs may change, and HPAs may be deleted and created.
    pub changing_hpas: bool,
    /// True if the statuses of HPAs matter, even if the controller does not read them.
    pub statuses: bool,
    /// True if reconciles may wait, so that resyncs of the informer can happen during them.
    pub waits: bool,
    /// True if the ordinals of pods matter. Otherwise, only their order does.
    pub ordinals: bool,
    /// The time after its start in which a pod may be unready because of its samples.
    pub initialization: Span,
    /// The time after its start until which a pod may become ready for the first time.
    pub readiness_delay: Span,
}

/// A part of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The keys in the controller's queue.
    Queue,
    /// The selectors that the controller knows, and the specs and statuses of HPAs.
    Hpas,
    /// The recommendations that the controller remembers.
    Recommendations,
    /// The scale events that the controller remembers.
    ScaleEvents,
    /// The replicas of the targets, the pods without their ages, and their scheduled changes.
    Pods,
    /// When pods started, and when their readiness changed.
    PodAges,
    /// The rest of the timeline, and the actions in effect.
    Timeline,
    /// The values of metrics.
    Metrics,
    /// The choices of the search.
    Choices,
    /// What has been seen of the expectations.
    Expectations,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 10] = [
        Part::Queue,
        Part::Hpas,
        Part::Recommendations,
        Part::ScaleEvents,
        Part::Pods,
        Part::PodAges,
        Part::Timeline,
        Part::Metrics,
        Part::Choices,
        Part::Expectations,
    ];
}

/// A state. Its memory is reused for the next one.
#[derive(Clone, Debug)]
pub struct State {
    /// What the state may leave out.
    pub scope: StateScope,
    /// A part that is left out, in tests of the others.
    pub left_out: Option<Part>,
    now: Time,
    words: Vec<u64>,
    /// True if the present part is left out.
    skips: bool,
}

impl State {
    /// A state without any words.
    #[must_use]
    pub fn new(scope: StateScope) -> State {
        State { scope, left_out: None, now: Time::ZERO, words: Vec::new(), skips: false }
    }

    /// Begins the state at a time.
    pub fn begin(&mut self, now: Time) {
        self.now = now;
        self.words.clear();
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The words so far.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Begins a part. The following words belong to it.
    pub fn part(&mut self, part: Part) {
        self.skips = self.left_out == Some(part);
    }

    #[inline]
    fn push(&mut self, word: u64) {
        if !self.skips {
            self.words.push(word);
        }
    }

    /// Adds a number.
    #[inline]
    pub fn number(&mut self, number: impl Into<i64>) {
        self.push(number.into().cast_unsigned());
    }

    /// Adds the length of a list or an index.
    #[inline]
    pub fn count(&mut self, count: usize) {
        self.push(count as u64);
    }

    /// Adds a time, relative to the present.
    #[inline]
    pub fn time(&mut self, time: Time) {
        self.number((time - self.now).0);
    }

    /// Adds a time that may be absent.
    #[inline]
    pub fn optional_time(&mut self, time: Option<Time>) {
        // No time is that far away.
        self.number(time.map_or(i64::MIN, |time| (time - self.now).0));
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.count(text.len());
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        text.as_bytes().chunks(8).for_each(|bytes| self.push(word(bytes)));
    }

    /// A hash of all words. With 128 bits, two of a billion different states have the same hash
    /// with a probability of less than 10⁻²⁰.
    #[must_use]
    pub fn hash(&self) -> u128 {
        // Two folded multiplications with odd constants: digits of the golden ratio and of π.
        let fold = |hash: u64, word: u64, constant: u64| {
            let product = u128::from(hash ^ word) * u128::from(constant);
            (product as u64) ^ ((product >> 64) as u64)
        };
        let (mut low, mut high) = (self.words.len() as u64, 0x243f_6a88_85a3_08d3_u64);
        for word in &self.words {
            low = fold(low.rotate_left(23), *word, 0x9e37_79b9_7f4a_7c15);
            high = fold(high.rotate_left(29), *word, 0xc2b2_ae3d_27d4_eb4f);
        }
        u128::from(low) << 64 | u128::from(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(now: i64, add: impl FnOnce(&mut State)) -> State {
        let scope = StateScope {
            changing_hpas: false,
            statuses: false,
            waits: false,
            ordinals: false,
            initialization: Span::ZERO,
            readiness_delay: Span::ZERO,
        };
        let mut state = State::new(scope);
        state.begin(Time::from_secs(now));
        add(&mut state);
        state
    }

    #[test]
    fn times_are_relative_to_the_present() {
        let one = state(10, |state| state.time(Time::from_secs(25)));
        let other = state(100, |state| state.time(Time::from_secs(115)));
        assert_eq!((one.words(), one.hash()), (other.words(), other.hash()));
        let absent = state(10, |state| state.optional_time(None));
        assert_ne!(one.hash(), absent.hash());
    }

    #[test]
    fn different_words_have_different_hashes() {
        let texts = ["", "a", "b", "ab", "ba", "a longer text", "a longer texu", "\0", "\0\0"];
        let mut hashes: Vec<u128> =
            texts.iter().map(|text| state(0, |state| state.text(text)).hash()).collect();
        for number in 0..10_000i64 {
            let add = |state: &mut State| {
                state.number(number);
                state.number(7);
            };
            hashes.push(state(0, add).hash());
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
