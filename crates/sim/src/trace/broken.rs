//! Breaks the lines of a trace, each a JSON value, into the lines of a trace file.

/// The longest value that is not broken into lines, in bytes.
const WIDTH: usize = 120;

/// A line of a trace as lines of a file.
#[must_use]
pub fn broken(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    write_value(line, &mut lines, 0);
    lines
}

/// Writes a JSON value, which continues the last line. A value that does not fit in a line has one
/// member per line; but if only its last member does not fit, only this member is broken.
fn write_value(value: &str, lines: &mut Vec<String>, depth: usize) {
    let column = lines.last().map_or(0, String::len);
    let members = members(value);
    if members.is_empty() || column + value.len() <= WIDTH {
        return add(lines, value);
    }
    let (open, close) = (&value[..1], &value[value.len() - 1..]);
    add(lines, open);
    let last = members.len() - 1;
    let before_last = members[..last].iter().map(|member| member.len() + 1).sum::<usize>();
    let (key, inner) = key_and_value(members[last]);
    let only_last = open == "{" && column + before_last + key.len() < WIDTH;
    if only_last && inner.starts_with(['{', '[']) {
        members[..last].iter().for_each(|member| add(lines, &format!("{member},")));
        add(lines, key);
        write_value(inner, lines, depth);
        return add(lines, close);
    }
    for member in members {
        lines.push(" ".repeat(depth + 1));
        let (key, inner) = key_and_value(member);
        add(lines, key);
        write_value(inner, lines, depth + 1);
    }
    lines.push(" ".repeat(depth));
    add(lines, close);
}

fn add(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

/// The key of a member of an object, with its colon, and the value. The key of a member of a list
/// is empty.
fn key_and_value(member: &str) -> (&str, &str) {
    let key = if member.starts_with('"') { string_end(member) } else { 0 };
    match member[key..].starts_with(':') {
        true => member.split_at(key + 1),
        false => ("", member),
    }
}

/// The length of the string at the start of a JSON text.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The members of a JSON object or list, as texts. Other values have none.
fn members(value: &str) -> Vec<&str> {
    if !value.starts_with(['{', '[']) || value.len() == 2 {
        return Vec::new();
    }
    let mut members = Vec::new();
    let (mut depth, mut start, mut at) = (0_usize, 1, 1);
    while at < value.len() - 1 {
        match value.as_bytes()[at] {
            b'"' => at += string_end(&value[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                members.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    members.push(&value[start..value.len() - 1]);
    members
}
