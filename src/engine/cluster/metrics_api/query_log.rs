//! What the metrics APIs are asked, by whom, and what they answer: for people to read.

use crate::engine::cluster::metrics_api::query::{ASKING, Asked, Query};
use crate::engine::cluster::metrics_api::response::{InShort, error, failure};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;

use crate::engine::cluster::metrics_api::state::Metrics;

/// Lets a query wait as long as the scenario says, and tells of it when it is answered.
pub(crate) async fn observe(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let at = Timestamp::now();
    let Some(asked) = Asked::of(request.uri()) else {
        return next.run(request).await;
    };
    let header = |headers: &HeaderMap, name: &str| {
        headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned)
    };
    let user_agent = header(request.headers(), "user-agent");
    let user = header(request.headers(), "x-remote-user");
    let answer = if let Some(kind) = asked.watched() {
        let why = format!("watch is not supported on resources of kind \"{kind}\"");
        failure(&error(405, "MethodNotAllowed", &why))
    } else {
        let slow = asked.namespace.as_ref().and_then(|namespace| metrics.slowness(namespace));
        if let Some(span) = slow {
            tokio::time::sleep(Duration::from_nanos(span.0.unsigned_abs())).await;
        }
        ASKING.scope(user.clone().unwrap_or_default(), next.run(request)).await
    };
    metrics.asked(|| {
        let short = answer.extensions().get::<InShort>().map(|it| it.0.clone());
        let code = answer.status().as_u16();
        let Asked { group, namespace, what, parameters } = asked;
        let answer = short.unwrap_or_default();
        Query { at, user_agent, user, group, namespace, what, parameters, code, answer }
    });
    answer
}
