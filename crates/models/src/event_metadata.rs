//! The metadata of an event as it is sent to the API: its name and times, its source, and the
//! object that it is about.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::{Time, rfc3339};

/// The maximum length of an object's name. Since Kubernetes 1.33, client-go gives an event a random
/// name if its name would be longer.
const LONGEST_NAME: usize = 253;

/// The object that an event is about, apart from its name, and the source of the event. A field
/// with its default is omitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOrigin {
    /// The kind of the object. Default: `HorizontalPodAutoscaler`.
    #[serde(default = "hpa_kind", skip_serializing_if = "is_hpa_kind")]
    pub object_kind: Cow<'static, str>,
    /// The API version of the object. Default: `autoscaling/v2`. Since version 5 of the protocol.
    #[serde(default = "hpa_version", skip_serializing_if = "is_hpa_version")]
    pub object_api_version: Cow<'static, str>,
    /// The UID of the object. Default: that of the first HPA,
    /// `00000000-0000-4000-8000-000000000001`. Since version 5 of the protocol.
    #[serde(default = "first_uid", skip_serializing_if = "is_first_uid")]
    pub object_uid: Cow<'static, str>,
    /// The component that recorded the event. Default: `horizontal-pod-autoscaler`.
    #[serde(default = "component", skip_serializing_if = "is_component")]
    pub component: Cow<'static, str>,
}

impl EventOrigin {
    /// The origin of the controller's events about an HPA. `number`: its number in the order of
    /// creation, from 1.
    pub(crate) fn for_hpa(api_version: &'static str, number: u64) -> EventOrigin {
        let object_api_version = Cow::Borrowed(api_version);
        let object_uid = match number {
            1 => first_uid(),
            _ => Cow::Owned(format!("00000000-0000-4000-8000-{number:012}")),
        };
        EventOrigin { object_api_version, object_uid, ..EventOrigin::default() }
    }

    /// The origin without the fields that engines report since version 5 of the protocol.
    pub fn for_older_protocol(&self) -> EventOrigin {
        let EventOrigin { object_kind, component, .. } = self.clone();
        EventOrigin { object_kind, component, ..EventOrigin::default() }
    }
}

impl Default for EventOrigin {
    fn default() -> EventOrigin {
        EventOrigin {
            object_kind: hpa_kind(),
            object_api_version: hpa_version(),
            object_uid: first_uid(),
            component: component(),
        }
    }
}

fn hpa_kind() -> Cow<'static, str> {
    Cow::Borrowed("HorizontalPodAutoscaler")
}

fn is_hpa_kind(kind: &str) -> bool {
    kind == hpa_kind()
}

fn hpa_version() -> Cow<'static, str> {
    Cow::Borrowed("autoscaling/v2")
}

fn is_hpa_version(version: &str) -> bool {
    version == hpa_version()
}

fn first_uid() -> Cow<'static, str> {
    Cow::Borrowed("00000000-0000-4000-8000-000000000001")
}

fn is_first_uid(uid: &str) -> bool {
    uid == first_uid()
}

fn component() -> Cow<'static, str> {
    Cow::Borrowed("horizontal-pod-autoscaler")
}

fn is_component(name: &str) -> bool {
    name == component()
}

/// The name and the times of an event. In an observation, those that follow from the beginning of
/// the reconcile are omitted: see `EventTimes::relative_to`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTimes {
    /// The name of the event: the name of the object, a dot, and the time of the first occurrence,
    /// in the log as hexadecimal nanoseconds of Unix time. Default: the name with the time at which
    /// the reconcile began. Since version 5 of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_name: Option<Arc<str>>,
    /// The time of the first occurrence, in whole seconds. Default: the time in the name. Since
    /// version 5 of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::option")]
    #[schemars(with = "Option<String>")]
    pub first_timestamp: Option<Time>,
    /// The time of the last occurrence, in whole seconds. Default: the time at which the reconcile
    /// began. Since version 5 of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::option")]
    #[schemars(with = "Option<String>")]
    pub last_timestamp: Option<Time>,
}

impl EventTimes {
    /// The name and the times of an event about an object, in a reconcile that began at `began`.
    pub(crate) fn new(object: &str, first: Time, last: Time, began: Time) -> EventTimes {
        let mut times = EventTimes {
            event_name: Some(format!("{object}.{first}").into()),
            first_timestamp: Some(first.truncate_to_second()),
            last_timestamp: Some(last.truncate_to_second()),
        };
        times.relative_to(object, began);
        times
    }

    /// Converts all times of an engine to times since t=0, when the engine's clock shows `epoch`.
    pub fn start_at(&mut self, epoch: Time) {
        let times = self.first_timestamp.iter_mut().chain(&mut self.last_timestamp);
        times.for_each(|time| *time = *time - epoch.since_start());
        let time = |digits: &str| {
            let nanos = i64::from_str_radix(digits, 16).ok()?;
            Some(rfc3339::from_unix_nanos(nanos)? - epoch.since_start())
        };
        let name = self.event_name.as_deref().and_then(|name| name.rsplit_once('.'));
        let name = name.and_then(|(object, digits)| Some(format!("{object}.{}", time(digits)?)));
        if let Some(name) = name {
            self.event_name = Some(name.into());
        }
    }

    /// Omits values that follow from the beginning of the reconcile, so that the events of most
    /// reconciles are equal. Also omits the name if client-go may choose a random one, because the
    /// object's name is too long.
    pub fn relative_to(&mut self, object: &str, began: Time) {
        const DIGITS: usize = 16;
        let is_random = object.len() + ".".len() + DIGITS > LONGEST_NAME;
        let named = self.event_name.as_deref().and_then(|name| name.strip_prefix(object));
        let named = named.and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        if is_random || named == Some(began) {
            self.event_name = None;
        }
        let named: Time = named.filter(|_| !is_random).unwrap_or(began);
        self.first_timestamp.take_if(|time| *time == named.truncate_to_second());
        self.last_timestamp.take_if(|time| *time == began.truncate_to_second());
    }
}

/// Empty if all fields have their defaults. Otherwise, all of them: ` (object kind Deployment,
/// version apps/v1, UID …, component web)`.
impl fmt::Display for EventOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == EventOrigin::default() {
            return Ok(());
        }
        let EventOrigin { object_kind, object_api_version, object_uid, component } = self;
        write!(f, " (object kind {object_kind}, version {object_api_version}, UID {object_uid}, ")?;
        write!(f, "component {component})")
    }
}

/// The values that are not omitted: ` (name web.15s, first at 15s, last at 30s)`. Empty if all are.
impl fmt::Display for EventTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EventTimes { event_name, first_timestamp, last_timestamp } = self;
        let name = event_name.as_ref().map(|name| format!("name {name}"));
        let first = first_timestamp.map(|time| format!("first at {time}"));
        let last = last_timestamp.map(|time| format!("last at {time}"));
        let parts: Vec<String> = [name, first, last].into_iter().flatten().collect();
        match parts.as_slice() {
            [] => Ok(()),
            parts => write!(f, " ({})", parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name and times as reported by an engine whose clock shows `epoch` at t=0.
    fn reported(name: &str, first: Time, last: Time, epoch: Time) -> EventTimes {
        let [first, last] = [first, last].map(|time| time + epoch.since_start());
        EventTimes {
            event_name: Some(name.into()),
            first_timestamp: Some(first.truncate_to_second()),
            last_timestamp: Some(last.truncate_to_second()),
        }
    }

    #[test]
    fn reported_times_are_those_of_the_model() {
        let (epoch, began) = (Time::from_secs(60), Time::from_secs(30));
        let unix = |time: Time| 946_684_860_000_000_000 + time.0;
        let half = Time(15_500_000_000);
        for (first, last, shown) in [
            (began, began, ""),
            (half, began, " (name web.15.5s)"),
            (Time(began.0 + 1), Time::from_secs(31), " (name web.30.000000001s, last at 31s)"),
        ] {
            let mut times = reported(&format!("web.{:x}", unix(first)), first, last, epoch);
            times.start_at(epoch);
            times.relative_to("web", began);
            assert_eq!(times, EventTimes::new("web", first, last, began));
            assert_eq!(times.to_string(), shown);
        }
        let mut other = reported("db.d237d60e87ba000", began, began, epoch);
        other.start_at(epoch);
        other.relative_to("web", began);
        assert_ne!(other, EventTimes::new("web", began, began, began));
        let mut later = reported(&format!("web.{:x}", unix(began)), half, half, epoch);
        later.start_at(epoch);
        later.relative_to("web", began);
        assert_eq!(later.to_string(), " (first at 15s, last at 15s)");
    }

    /// Since Kubernetes 1.33, the name would be a random UUID.
    #[test]
    fn a_name_that_is_too_long_is_left_to_chance() {
        let (epoch, began) = (Time::from_secs(60), Time::from_secs(30));
        for (length, is_left) in [(236, false), (237, true)] {
            let object = "a".repeat(length);
            let mut random = reported("3f0c", began, began, epoch);
            random.start_at(epoch);
            random.relative_to(&object, began);
            assert_eq!(random == EventTimes::new(&object, began, began, began), is_left);
        }
    }
}
