//! Rules of the events that reach the API server.

/// The rules by which client-go combines and limits events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventRules {
    /// The limit on the rate of the events of one object.
    pub limit: EventLimit,
    /// True if the events of one object are limited by their type.
    pub limited_by_type: bool,
    /// True if the message of a combined event ends with the message of the last event.
    pub combined_has_message: bool,
    /// If true, client-go records events in the order in which they occur. If false, it records
    /// each event on a goroutine of its own, and chance decides their order.
    pub in_order: bool,
}

/// A limit on the rate of events: 25, and then one in five minutes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventLimit {
    /// Every event is sent.
    Unlimited,
    /// One more event is allowed at each multiple of five minutes since the first event.
    WholeTokens,
    /// Time that has passed since the last event counts towards the next one.
    Tokens,
}

impl EventRules {
    pub(crate) const OLDEST: EventRules = EventRules {
        limit: EventLimit::Unlimited,
        limited_by_type: false,
        combined_has_message: false,
        in_order: false,
    };
}
