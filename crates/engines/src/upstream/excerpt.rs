//! Keeps the head and the tail of a text from an engine, which may be endless, in bounded memory.

use std::borrow::Cow;
use std::collections::VecDeque;

/// The head and the tail of a text.
#[derive(Debug)]
pub(super) struct Excerpt {
    /// The maximum size of the head, and of the tail, in bytes.
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The number of bytes between them.
    omitted: u64,
}

impl Excerpt {
    /// Creates the excerpt of an empty text. `most`: the maximum size of the head, and of the tail,
    /// in bytes.
    pub(super) fn new(most: usize) -> Excerpt {
        Excerpt { most, head: Vec::new(), tail: VecDeque::new(), omitted: 0 }
    }

    /// The excerpt of a whole text.
    pub(super) fn of(text: &str, most: usize) -> String {
        let mut excerpt = Excerpt::new(most);
        excerpt.add(text.as_bytes());
        excerpt.text()
    }

    /// Adds the next bytes of the text.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.most - self.head.len()));
        self.head.extend(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.most);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
    }

    /// The head and the tail, with the number of bytes between them.
    pub(super) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.omitted == 0 {
            return text_of(&[&self.head, tail.as_slice()].concat()).into_owned();
        }
        let (head, tail) = (whole_end(&self.head), whole_start(&tail));
        let cut = (self.head.len() - head.len()) + (self.tail.len() - tail.len());
        let omitted = self.omitted.saturating_add(cut as u64);
        format!("{}\n… (bytes omitted: {omitted}) …\n{}", text_of(head), text_of(tail))
    }
}

fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The bytes without an incomplete character at the end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// The bytes without the rest of a character at the start.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let is_rest = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    &bytes[bytes.iter().take(3).take_while(is_rest).count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_whole() {
        assert_eq!(Excerpt::of("", 4), "");
        assert_eq!(Excerpt::of("äbcdef", 4), "äbcdef");
        assert_eq!(Excerpt::of("abcdäef", 4), "abcdäef");
    }

    #[test]
    fn long_texts_have_a_head_and_a_tail() {
        assert_eq!(Excerpt::of("abcdefghi", 4), "abcd\n… (bytes omitted: 1) …\nfghi");
        assert_eq!(Excerpt::of("abcäöäghi", 4), "abc\n… (bytes omitted: 6) …\nghi");
        let mut excerpt = Excerpt::new(1000);
        for _ in 0..100_000 {
            excerpt.add(&[b'x'; 1000]);
        }
        assert!(excerpt.tail.capacity() < 10_000, "{}", excerpt.tail.capacity());
        assert!(excerpt.text().contains("\n… (bytes omitted: 99998000) …\n"), "{}", excerpt.text());
    }
}
