//! Label selectors in their text form: `app=web,tier in (a,b),!canary`.
//!
//! Errors have upstream's messages, since the controller quotes them in events and conditions.
//! Upstream: apimachinery, `pkg/labels/selector.go`.

mod label_selector;
mod matcher;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use matcher::{Matcher, is_same};

/// A parsed label selector: all requirements hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted.
    values: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Exists,
    DoesNotExist,
}

/// A text that is not a selector. The messages are upstream's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectorError {
    text: String,
    /// The wrong number of values, if it is the only error.
    wrong_number: Option<WrongNumber>,
}

/// A number of values that does not suit the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
struct WrongNumber {
    values: Vec<String>,
    detail: &'static str,
}

/// The format in which a release prints a wrong number of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrongNumberFormat {
    /// Only the detail.
    Detail,
    /// The field, and the values in Go's syntax.
    GoSyntax,
    /// The field, and the values as JSON.
    Json,
}

impl SelectorError {
    /// The message in the format of a release.
    #[must_use]
    pub(crate) fn in_format(&self, format: WrongNumberFormat) -> String {
        match (&self.wrong_number, format) {
            (Some(wrong), WrongNumberFormat::Detail) => wrong.detail.to_owned(),
            (Some(WrongNumber { values, detail }), WrongNumberFormat::GoSyntax) => {
                format!("values: Invalid value: {}: {detail}", go_syntax(values))
            }
            _ => self.text.clone(),
        }
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SelectorError {}

fn error<T>(text: String) -> Result<T, SelectorError> {
    Err(SelectorError { text, wrong_number: None })
}

impl Selector {
    /// A selector that matches no pod.
    ///
    /// Upstream: selector.go, Nothing
    #[must_use]
    pub fn nothing() -> Selector {
        Selector { requirements: Vec::new(), nothing: true }
    }

    /// Reads a selector. Empty text matches everything.
    ///
    /// Upstream: selector.go, Parse
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let requirements = Parser { tokens: scan(text), position: 0 }.parse()?;
        Ok(Selector::from_requirements(requirements))
    }

    pub(super) fn from_requirements(mut requirements: Vec<Requirement>) -> Selector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Selector { requirements, nothing: false }
    }

    /// Returns true if the selector's text is empty, as it also is for a selector that matches
    /// nothing.
    #[must_use]
    pub(crate) fn is_without_requirements(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns true if the selector matches an object with these labels.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    /// Upstream: selector.go, Requirement.Matches
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = labels.get(&self.key);
        let has = |label: &String| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(has),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let ours = label.and_then(|label| parse_int(label));
                let theirs = self.values.first().and_then(|value| parse_int(value));
                match (ours, theirs) {
                    (Some(ours), Some(theirs)) if self.operator == Operator::GreaterThan => {
                        ours > theirs
                    }
                    (Some(ours), Some(theirs)) => ours < theirs,
                    _ => false,
                }
            }
        }
    }
}

/// Go's `strconv.ParseInt(text, 10, 64)`.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The selector as upstream writes it into queries: sorted by key, values sorted.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

fn keyword(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "in" => Token::In,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::Open,
        _ => return None,
    })
}

const SPECIAL: &[char] = &['=', '!', '(', ')', ',', '>', '<'];
const WHITE: &[char] = &[' ', '\t', '\r', '\n'];

/// Upstream: selector.go, Lexer
fn scan(text: &str) -> Vec<(Token, String)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(WHITE);
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, String::new()));
            return tokens;
        };
        if !SPECIAL.contains(&first) {
            let end = rest.find(|c| SPECIAL.contains(&c) || WHITE.contains(&c));
            let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push((keyword(word).unwrap_or(Token::Identifier), word.to_owned()));
            rest = tail;
            continue;
        }
        // The longest keyword; symbols that form no keyword are one error token.
        let symbols = rest.find(|c| !SPECIAL.contains(&c)).unwrap_or(rest.len());
        let mut last = None;
        let mut end = symbols;
        for length in 1..=symbols {
            match keyword(&rest[..length]) {
                Some(token) => last = Some((token, length)),
                None if last.is_some() => {
                    end = length - 1;
                    break;
                }
                None => {}
            }
        }
        match last {
            Some((token, length)) => tokens.push((token, rest[..length].to_owned())),
            None => {
                let text = format!("error expected: keyword found '{}'", &rest[..end]);
                tokens.push((Token::Error, text));
            }
        }
        rest = &rest[end..];
    }
}

/// Upstream: selector.go, Parser
struct Parser {
    tokens: Vec<(Token, String)>,
    position: usize,
}

impl Parser {
    /// The next token; in the place of a value, `in` and `notin` are ordinary words.
    fn lookahead(&self) -> (Token, &str) {
        let end = self.tokens.len() - 1;
        let (token, text) = &self.tokens[self.position.min(end)];
        match token {
            Token::In | Token::NotIn => (Token::Identifier, text),
            token => (*token, text),
        }
    }

    fn consume(&mut self) -> (Token, String) {
        let (token, text) = self.lookahead();
        let taken = (token, text.to_owned());
        self.position += 1;
        taken
    }

    fn parse(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            let (token, text) = self.lookahead();
            match token {
                Token::Identifier | Token::Not => {
                    let requirement = self.parse_requirement();
                    requirements.push(requirement.map_err(|wrong| SelectorError {
                        text: format!("unable to parse requirement: {wrong}"),
                        wrong_number: None,
                    })?);
                    let (token, text) = self.consume();
                    match token {
                        Token::End => return Ok(requirements),
                        Token::Comma => {}
                        _ => {
                            return error(format!(
                                "found '{text}', expected: ',' or 'end of string'"
                            ));
                        }
                    }
                    let (token, text) = self.lookahead();
                    if token != Token::Identifier && token != Token::Not {
                        return error(format!("found '{text}', expected: identifier after ','"));
                    }
                }
                Token::End => return Ok(requirements),
                _ => {
                    return error(format!(
                        "found '{text}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
    }

    fn parse_requirement(&mut self) -> Result<Requirement, SelectorError> {
        let (key, operator) = self.parse_key_and_infer_operator()?;
        if let Some(operator) = operator {
            return new_requirement(key, operator, Vec::new());
        }
        let operator = self.parse_operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.parse_values()?,
            _ => vec![self.parse_exact_value()?],
        };
        values.sort();
        values.dedup();
        new_requirement(key, operator, values)
    }

    fn parse_key_and_infer_operator(
        &mut self,
    ) -> Result<(String, Option<Operator>), SelectorError> {
        let mut operator = None;
        let (mut token, mut text) = self.consume();
        if token == Token::Not {
            operator = Some(Operator::DoesNotExist);
            (token, text) = self.consume();
        }
        if token != Token::Identifier {
            return error(format!("found '{text}', expected: identifier"));
        }
        let errors = is_label_key(&text);
        if !errors.is_empty() {
            return error(format!("<nil>: Invalid value: {text:?}: {}", errors.join("; ")));
        }
        if matches!(self.lookahead().0, Token::End | Token::Comma) {
            operator = operator.or(Some(Operator::Exists));
        }
        Ok((text, operator))
    }

    fn parse_operator(&mut self) -> Result<Operator, SelectorError> {
        let end = self.tokens.len() - 1;
        let (token, text) = &self.tokens[self.position.min(end)];
        self.position += 1;
        Ok(match token {
            Token::In => Operator::In,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            Token::NotIn => Operator::NotIn,
            Token::NotEquals => Operator::NotEquals,
            _ => {
                let operators = "in, notin, =, ==, !=, gt, lt";
                return error(format!("found '{text}', expected: {operators}"));
            }
        })
    }

    fn parse_values(&mut self) -> Result<Vec<String>, SelectorError> {
        let (token, text) = self.consume();
        if token != Token::Open {
            return error(format!("found '{text}' expected: '('"));
        }
        let (token, text) = self.lookahead();
        let text = text.to_owned();
        match token {
            Token::Identifier | Token::Comma => {
                let values = self.parse_identifiers_list()?;
                if self.consume().0 != Token::Close {
                    return error(format!("found '{text}', expected: ')'"));
                }
                Ok(values)
            }
            Token::Close => {
                self.consume();
                Ok(vec![String::new()])
            }
            _ => error(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    fn parse_identifiers_list(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        loop {
            let (token, text) = self.consume();
            let (next, next_text) = self.lookahead();
            match token {
                Token::Identifier => {
                    values.push(text);
                    match next {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        _ => {
                            return error(format!("found '{next_text}', expected: ',' or ')'"));
                        }
                    }
                }
                Token::Comma => {
                    if values.is_empty() || next == Token::Comma {
                        values.push(String::new());
                    }
                    if next == Token::Close {
                        values.push(String::new());
                        return Ok(values);
                    }
                }
                _ => return error(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }

    fn parse_exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.lookahead().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.consume() {
            (Token::Identifier, text) => Ok(text),
            (_, text) => error(format!("found '{text}', expected: identifier")),
        }
    }
}

/// Upstream: selector.go, NewRequirement
pub(super) fn new_requirement(
    key: String,
    operator: Operator,
    mut values: Vec<String>,
) -> Result<Requirement, SelectorError> {
    let mut errors = Vec::new();
    let wrong = is_label_key(&key);
    if !wrong.is_empty() {
        errors.push(format!("key: Invalid value: {key:?}: {}", wrong.join("; ")));
    }
    let wrong_number = match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        _ => None,
    };
    if let Some(wrong) = wrong_number {
        errors.push(format!("values: Invalid value: {}: {wrong}", go_json(&values)));
    }
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (index, value) in values.iter().enumerate().filter(|(_, v)| parse_int(v).is_none()) {
            errors.push(format!(
                "values[{index}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, \
                 the value must be an integer"
            ));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let wrong = is_label_value(value);
        if !wrong.is_empty() {
            let wrong = wrong.join("; ");
            errors.push(format!("values[{index}][{key}]: Invalid value: {value:?}: {wrong}"));
        }
    }
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [] => {
            values.sort();
            Ok(Requirement { key, operator, values })
        }
        [single] => {
            let text = single.clone();
            let wrong_number = wrong_number.map(|detail| WrongNumber { values, detail });
            Err(SelectorError { text, wrong_number })
        }
        many => error(format!("[{}]", many.join(", "))),
    }
}

/// Texts as Go encodes them in JSON: an absent list is `null`, and characters that are unsafe in
/// HTML are escaped.
fn go_json(texts: &[String]) -> String {
    if texts.is_empty() {
        return "null".to_owned();
    }
    let json = serde_json::Value::from(texts).to_string();
    let escapes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
    escapes.into_iter().fold(json, |json, (sign, escape)| json.replace(sign, escape))
}

/// Texts in Go's syntax.
fn go_syntax(texts: &[String]) -> String {
    if texts.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[]string{{{}}}", texts.join(", "))
}

const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn key_regex_error() -> String {
    format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
         regex used for validation is '{LABEL_KEY}')"
    )
}

fn is_key_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// The errors of a label's key.
///
/// Upstream: content/kube.go, IsLabelKey
pub fn is_label_key(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let wrong = is_dns1123_subdomain(prefix, "bytes");
                errors.extend(wrong.into_iter().map(|text| format!("prefix part {text}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                key_regex_error()
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key_text(name) {
        errors.push(format!("name part {}", key_regex_error()));
    }
    errors
}

/// The errors of a label's value.
///
/// Upstream: content/kube.go, IsLabelValue
pub fn is_label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_key_text(text) {
        errors.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is '({LABEL_KEY})?')"
        ));
    }
    errors
}

/// Upstream: util/validation/validation.go, IsDNS1123Label
pub fn is_dns1123_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if text.split('.').all(is_label_text) && text.contains('.') {
        errors.push("must not contain dots".to_owned());
    } else if !is_label_text(text) {
        errors.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// A part of a DNS name, of any length.
fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(inner)
        && bytes.last().is_some_and(inner)
        && bytes.iter().all(|b| inner(b) || *b == b'-')
}

/// Upstream has this function twice, with different names for the unit of the length.
///
/// Upstream: content/dns.go and util/validation/validation.go, IsDNS1123Subdomain
pub fn is_dns1123_subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(format!("must be no more than 253 {unit}"));
    }
    if !text.split('.').all(is_label_text) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    errors
}

/// Returns the labels of a selector that consists of equalities alone, as in `matchLabels`.
pub fn match_labels(selector: &str) -> Option<Vec<(&str, &str)>> {
    let labels: Option<Vec<_>> = selector.split(',').map(|part| part.split_once('=')).collect();
    let labels = labels?;
    let plain = |text: &&str| !text.is_empty() && !text.contains(['=', '!', ' ']);
    let all = labels.iter().all(|(key, value)| plain(key) && !value.contains(['=', '!', ' ']));
    (all && Selector::parse(selector).is_ok()).then_some(labels)
}
