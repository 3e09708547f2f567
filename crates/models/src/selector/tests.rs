//! Selectors as k8s.io/apimachinery v0.37.0 reads and prints them.

use super::*;

#[test]
fn selectors_are_parsed_sorted_and_printed_as_upstream() {
    for (text, printed) in [
        ("", ""),
        ("app=web", "app=web"),
        ("app==web", "app==web"),
        ("b=2,a=1", "a=1,b=2"),
        ("a in (y,x,x)", "a in (x,y)"),
        ("a notin (x)", "a notin (x)"),
        ("in in (in)", "in in (in)"),
        ("! a", "!a"),
        ("a,b", "a,b"),
        ("a=,b", "a=,b"),
        ("a in ()", "a in ()"),
        ("a in (x,,y)", "a in (,x,y)"),
        ("a > 1", "a>1"),
        ("example.com/a=b", "example.com/a=b"),
        ("  a  =  b  ", "a=b"),
    ] {
        assert_eq!(Selector::parse(text).map(|it| it.to_string()), Ok(printed.to_owned()));
    }
}

#[test]
fn selector_errors_match_upstream() {
    for (text, error) in [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        (
            "a gt 1",
            "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a<x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        (
            "a/=b",
            "unable to parse requirement: <nil>: Invalid value: \"a/\": name part must be \
             non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
             or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ] {
        let parsed = Selector::parse(text).map_err(|error| error.to_string());
        assert_eq!(parsed, Err(error.to_owned()), "{text}");
    }
    assert!(Selector::parse(&format!("a={}", "x".repeat(64))).is_err());
    assert!(Selector::parse("EX/a=b").is_err());
}

#[test]
fn all_requirements_must_hold() {
    let labels = [("app", "web"), ("tier", "7")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let labels = BTreeMap::from(labels);
    for (selector, matches) in [
        ("", true),
        ("app=web", true),
        ("app==web,tier=7", true),
        ("app=web,tier=8", false),
        ("app!=api", true),
        ("other!=x", true),
        ("other=x", false),
        ("app in (api,web)", true),
        ("app notin (api,web)", false),
        ("other notin (x)", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("tier>6", true),
        ("tier<7", false),
        ("app>1", false),
        ("other>1", false),
    ] {
        let parsed = Selector::parse(selector).unwrap();
        assert_eq!(parsed.matches(&labels), matches, "{selector}");
    }
    assert!(!Selector::nothing().matches(&labels));
}
