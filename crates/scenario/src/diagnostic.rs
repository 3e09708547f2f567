//! Problems and notes as data: kind, place, text and hint. Only renderers make one text of them.

use std::fmt;

use super::node::Node;

/// A problem of an input, or a note about it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Diagnostic {
    /// What later steps must know about the problem.
    pub kind: Kind,
    /// The position. `None`: not known yet, or not in a file. It is boxed to keep results small.
    pub place: Option<Box<Place>>,
    /// The problem and the expectation, or the text of a note.
    pub what: String,
    /// The solution.
    pub hint: Option<Hint>,
}

/// What later steps must know about a problem, apart from its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Kind {
    /// Nothing.
    #[default]
    Other,
    /// A map has an unknown field: the name of the field or, in an object of the Kubernetes
    /// API, its path.
    UnknownField(String),
    /// A map lacks a required field.
    MissingField(&'static str),
    /// The value of this field is wrong. The position is that of the field.
    InvalidField(&'static str),
    /// A recorded signal has several series, in place of one.
    SeveralSeries {
        /// The hint for a signal that is not the usage of pods.
        hint_without_pods: Box<str>,
    },
}

/// A position in a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The file. `None`: the file that is read.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

/// The solution of a problem.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hint {
    /// The known name that is most similar to the given one.
    Similar(String),
    /// The value that was probably meant.
    Meant(String),
    /// The possible values, if none is similar.
    Values(Vec<String>),
    /// Any other solution.
    Text(String),
}

impl Diagnostic {
    /// A diagnostic without a position or a hint.
    pub fn new(what: impl Into<String>) -> Diagnostic {
        Diagnostic { what: what.into(), ..Diagnostic::default() }
    }

    /// Sets the position, in the file that is read.
    #[must_use]
    pub fn at(self, line: usize, column: usize) -> Diagnostic {
        self.at_place(Place { file: None, line, column })
    }

    /// Sets the position.
    #[must_use]
    pub(crate) fn at_place(self, place: Place) -> Diagnostic {
        Diagnostic { place: Some(Box::new(place)), ..self }
    }

    /// Sets the position to that of a node.
    #[must_use]
    pub fn at_node(self, node: &Node) -> Diagnostic {
        self.at(node.line, node.column)
    }

    /// Sets the position, unless it is known.
    #[must_use]
    pub(crate) fn or_at(self, line: usize, column: usize) -> Diagnostic {
        if self.place.is_some() { self } else { self.at(line, column) }
    }

    /// Sets the position to that of a node, unless it is known.
    #[must_use]
    pub(crate) fn or_at_node(self, node: &Node) -> Diagnostic {
        self.or_at(node.line, node.column)
    }

    /// Sets the file of the position, which is the first line if there is none.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Diagnostic {
        self = self.or_at(1, 1);
        if let Some(place) = &mut self.place {
            place.file = Some(file.to_owned());
        }
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<Hint>) -> Diagnostic {
        self.with_hint(Some(hint.into()))
    }

    /// Sets or removes the hint.
    #[must_use]
    pub fn with_hint(self, hint: Option<Hint>) -> Diagnostic {
        Diagnostic { hint, ..self }
    }

    /// Sets the kind.
    #[must_use]
    pub fn kind(self, kind: Kind) -> Diagnostic {
        Diagnostic { kind, ..self }
    }

    /// The hint as text.
    #[must_use]
    pub fn hint_text(&self) -> Option<String> {
        self.hint.as_ref().map(ToString::to_string)
    }

    /// The problem in one line with its hint, after `separator`.
    #[must_use]
    pub fn in_one_line(&self, separator: &str) -> String {
        match &self.hint {
            Some(hint) => format!("{}{separator}{hint}", self.what),
            None => self.what.clone(),
        }
    }

    /// `FILE:LINE:COLUMN: TEXT`. `file` is the file that was read.
    #[must_use]
    pub fn located(&self, file: &str) -> String {
        let file = self.file().unwrap_or(file);
        match self.place.as_deref() {
            Some(Place { line, column, .. }) => format!("{file}:{line}:{column}: {self}"),
            None => format!("{file}: {self}"),
        }
    }

    /// The line, if the position is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// The file of the position, if it is not the file that is read.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref()?.file.as_deref()
    }
}

impl From<String> for Diagnostic {
    fn from(what: String) -> Diagnostic {
        Diagnostic::new(what)
    }
}

impl From<&str> for Diagnostic {
    fn from(what: &str) -> Diagnostic {
        Diagnostic::new(what)
    }
}

/// The text, without position and hint.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Diagnostic {}

impl From<String> for Hint {
    fn from(text: String) -> Hint {
        Hint::Text(text)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Hint {
        Hint::Text(text.to_owned())
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Similar(name) => write!(f, "did you mean `{name}`?"),
            Hint::Meant(value) => write!(f, "did you mean {value}?"),
            Hint::Values(values) => match values.as_slice() {
                [only] => write!(f, "expected `{only}`"),
                many => write!(f, "expected one of {}", many.join(", ")),
            },
            Hint::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_is_rendered_with_its_place_and_hint() {
        let problem = Diagnostic::new("unknown field `repicas`").at(3, 5);
        assert_eq!(problem.located("a.yaml"), "a.yaml:3:5: unknown field `repicas`");
        let problem = problem.in_file("b.yaml").hint(Hint::Similar("replicas".to_owned()));
        assert_eq!(problem.located("a.yaml"), "b.yaml:3:5: unknown field `repicas`");
        let in_one_line = "unknown field `repicas`; did you mean `replicas`?";
        assert_eq!(problem.in_one_line("; "), in_one_line);
    }

    #[test]
    fn hints_are_rendered_by_their_kind() {
        let values = |values: &[&str]| {
            Hint::Values(values.iter().map(|value| (*value).to_owned()).collect()).to_string()
        };
        assert_eq!(values(&["cpu"]), "expected `cpu`");
        assert_eq!(values(&["cpu", "memory"]), "expected one of cpu, memory");
        assert_eq!(Hint::Meant("30s".to_owned()).to_string(), "did you mean 30s?");
    }
}
