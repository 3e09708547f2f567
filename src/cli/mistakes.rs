//! Hints on mistakes in command lines that clap does not recognize: habits from kubectl.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The commands that select HPAs of manifests.
const COMMANDS: [&str; 4] = ["predict", "compare", "init", "explain"];

/// Adds a hint to an error of the command line with these arguments.
pub(super) fn with_hint(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    let named = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    let (wrong, other) = (named(ContextKind::InvalidArg), named(ContextKind::PriorArg));
    let hint = match error.kind() {
        ErrorKind::ArgumentConflict if format!("{wrong} {other}").contains("--filename") => {
            several_files(arguments)
        }
        ErrorKind::UnknownArgument if matches!(&*wrong, "-n" | "--namespace") => {
            let reads_manifests = |it: &String| COMMANDS.contains(&it.as_str());
            arguments.iter().any(reads_manifests).then(|| namespace_hint(arguments))
        }
        _ => None,
    };
    if let Some(hint) = hint {
        let hint = ContextValue::StyledStrs(vec![hint.into()]);
        error.insert(ContextKind::Suggested, hint);
    }
    error
}

/// The hint for `-f a.yaml b.yaml`, where each file requires the option.
fn several_files(arguments: &[String]) -> Option<String> {
    let is_option = |it: &&String| matches!(it.as_str(), "-f" | "--filename");
    let first = arguments.iter().position(|it| is_option(&it))?;
    let files = arguments[first + 1..].iter().take_while(|it| !it.starts_with('-'));
    let files: Vec<String> = files.map(|file| format!("-f {file}")).collect();
    (files.len() > 1).then(|| format!("to name several files, repeat -f: {}", files.join(" ")))
}

/// The hint for `-n prod`.
fn namespace_hint(arguments: &[String]) -> String {
    let is_option = |it: &String| matches!(it.as_str(), "-n" | "--namespace");
    let value = arguments.iter().position(is_option).and_then(|at| arguments.get(at + 1));
    let namespace = value.filter(|it| !it.starts_with('-')).map_or("NAMESPACE", String::as_str);
    format!("to select the HPAs of a namespace, use --hpa '{namespace}/*'; for VPAs, --vpa")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_arguments() {
        let arguments = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let hint = several_files(&arguments("predict -f a.yaml b.yaml --load cpu=1"));
        assert_eq!(hint.as_deref(), Some("to name several files, repeat -f: -f a.yaml -f b.yaml"));
        assert_eq!(several_files(&arguments("predict a.yaml -f b.yaml")), None);
        let hint = namespace_hint(&arguments("predict -f a.yaml -n prod"));
        assert!(hint.contains("--hpa 'prod/*'"), "{hint}");
    }
}
