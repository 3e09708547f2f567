//! A note on queries whose result counts the usage of containers twice.

/// The metrics of cAdvisor that exist for each container and, as a sum, for each pod.
const OF_CONTAINERS: [&str; 2] = ["container_cpu_", "container_memory_"];

/// The labels that tell the series of containers from those of pods.
const LABELS: [&str; 2] = ["container", "image"];

/// A note if the query selects usage of containers and, with it, the sums of cAdvisor.
pub fn note(query: &str) -> Option<String> {
    let metric = unrestricted(query)?;
    Some(format!(
        "--query selects {metric} without a matcher on the label `container`: cAdvisor also has a \
         series with the sum of each pod, so that usage counts twice. Add container!=\"\" to the \
         matchers"
    ))
}

/// The first metric of containers that no matcher restricts to containers.
fn unrestricted(query: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let mut rest = query;
    while let Some(start) = rest.find(|c: char| is_of_name(c) || is_quote(c)) {
        rest = &rest[start..];
        if rest.starts_with(is_quote) {
            rest = after_quotes(rest);
            continue;
        }
        let (name, after) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
        rest = after;
        if !OF_CONTAINERS.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let matchers = after.trim_start().strip_prefix('{');
        let labels = matchers.map(labels).unwrap_or_default();
        if !labels.iter().any(|label| LABELS.contains(label)) {
            return Some(name);
        }
    }
    None
}

/// The labels of matchers, up to the closing brace.
fn labels(mut rest: &str) -> Vec<&str> {
    let mut labels = Vec::new();
    while let Some(end) = rest.find(|c| is_quote(c) || matches!(c, '=' | '!' | '}')) {
        match rest[end..].chars().next() {
            Some('=' | '!') => {
                labels.extend(rest[..end].rsplit(',').next().map(str::trim));
                rest = rest[end + 1..].trim_start_matches(['=', '~']);
            }
            Some('}') => break,
            _ => rest = after_quotes(&rest[end..]),
        }
    }
    labels
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// The text after the quoted string at the start.
fn after_quotes(text: &str) -> &str {
    let quote = text.chars().next();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != Some('`') => escaped = true,
            _ if Some(c) == quote => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_containers_without_a_matcher_on_them_is_noted() {
        for query in [
            r#"sum(rate(container_cpu_usage_seconds_total{pod=~"web-.*"}[2m]))"#,
            "sum(container_memory_working_set_bytes)",
            r#"container_memory_rss {pod="a,container=b"}"#,
            r#"up{container="a"} + rate(container_cpu_usage_seconds_total[5m])"#,
        ] {
            let note = note(query).unwrap_or_default();
            assert!(note.contains("container!=\"\""), "{query}: {note}");
        }
    }

    #[test]
    fn usage_of_containers_with_a_matcher_is_usual() {
        for query in [
            r#"sum(rate(container_cpu_usage_seconds_total{pod=~"web-.*",container!=""}[2m]))"#,
            r#"container_memory_working_set_bytes{ container =~ "app|log" }"#,
            r#"sum(rate(container_cpu_usage_seconds_total{pod="a}\"", image!=''}[5m]))"#,
            "node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate",
            "container_network_receive_bytes_total",
            "label_replace(up, \"x\", \"container_cpu_x\", \"\", \"\")",
            "sum(http_requests)",
        ] {
            assert_eq!(note(query), None, "{query}");
        }
    }
}
