//! Errors of clusters, as text for people.

use kube::Error;

/// An error with what it comes from.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        source = error.source();
    }
    text
}

/// What an API server says, without all that its client knows of it; or why it can't be asked.
pub(crate) fn told(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => chain(other),
    }
}
