//! The parser of scenarios on arbitrary text and on corrupted fixtures: it returns a scenario or an
//! error with a position in the file, and never panics.

use crate::support;
use std::sync::OnceLock;

use crate::support::damage::{change, changed};
use kube_lockstep_scenario as scenario;
use proptest::prelude::*;
use proptest::sample::Index;

fn fixtures() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).expect("a fixture can be read");
        support::fixtures().into_iter().map(read).collect()
    })
}

/// Parses a text, and checks that problems have positions inside the file.
fn parse(text: &str) -> Result<(), TestCaseError> {
    let no_files = |_: &str| Err("there is no other file".into());
    match scenario::parse("any.yaml", text, &no_files) {
        Ok(read) => {
            let written = scenario::to_yaml(&read, None);
            let again = scenario::parse("any.yaml", &written, &no_files);
            let again =
                again.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(&again.hash, &read.hash, "{}\n{}", text, written);
        }
        Err(error) => {
            prop_assert!(!error.problems.is_empty());
            let lines = text.lines().count().max(1);
            for problem in &error.problems {
                let place = problem.place.as_ref().expect("a position");
                prop_assert!(place.column >= 1, "{error}");
                prop_assert!((1..=lines + 1).contains(&place.line), "{error}\n{text}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC*") {
        parse(&text)?;
    }

    #[test]
    fn any_yaml_like_text_is_parsed_or_rejected(
        text in "([ ]{0,6}(- )?[a-zA-Z]{1,8}:? ?[\\[\\]{}0-9a-z\"'&*!|>%@`,.-]{0,8}\n){0,12}"
    ) {
        parse(&text)?;
    }

    #[test]
    fn mutated_fixtures_are_parsed_or_rejected(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        parse(&changed(which.get::<String>(fixtures()).as_str(), &changes))?;
    }
}
