//! Texts of errors.

use kube::Error;

/// The text of an error and its causes.
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

/// The API server's message, or the reason why there is none.
pub(crate) fn message(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => chain(other),
    }
}
