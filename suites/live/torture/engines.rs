//! Engines that break the protocol: a proxy before the real upstream engine does one wrong thing at
//! one of its answers.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

use libtest_mimic::Failed;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{Round, failure, run, support};
use crate::support::place::Workspace;

/// The first argument of the proxy; the seed, the number of the round and the engine follow.
pub(super) const BROKEN: &str = "--broken-engine";

/// The address space of the command, of the proxy and of the engine, in KiB. The engine's runtime
/// reserves more than it uses.
const MEMORY: u64 = 4 << 20;

/// A scenario with several steps.
const FIXTURE: &str = "tolerance/just-above-the-upper-edge-scales-up";

/// The answers of each session: `hello`, `opened` and at least one `stepped` come first.
const ANSWERS: usize = 3;

/// The effect of the proxy on an answer.
#[derive(Clone, Debug)]
enum Fault {
    /// It cuts the answer.
    Cut(Index),
    /// It answers with other bytes.
    Bytes(Vec<u8>),
    /// It does not answer.
    Silence,
    /// It exits with this status.
    Exit(u8),
    /// It kills itself.
    Die,
    /// It answers with deeply nested JSON.
    Nested(usize),
    /// It closes its output and goes on.
    Close,
    /// It answers twice.
    Twice,
    /// It replaces a value of the answer.
    Replace(Index, Value),
    /// It answers with this many digits in place of the value of the target.
    Digits(usize),
    /// It removes a value of the answer.
    Remove(Index),
    /// It changes a byte.
    Byte(Index, u8),
    /// It writes megabytes to its standard error.
    Complain(usize),
    /// It leaves a child that holds its output, and exits.
    Child,
}

impl Fault {
    /// Returns true if no engine with this fault conforms.
    fn breaks_the_protocol(&self) -> bool {
        match self {
            Fault::Cut(_)
            | Fault::Bytes(_)
            | Fault::Silence
            | Fault::Exit(_)
            | Fault::Die
            | Fault::Nested(_)
            | Fault::Close
            | Fault::Child => true,
            // These may concern a value that nothing depends on, or the end of the session.
            Fault::Twice
            | Fault::Replace(..)
            | Fault::Digits(_)
            | Fault::Remove(_)
            | Fault::Byte(..)
            | Fault::Complain(_) => false,
        }
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    let value = prop::sample::select(vec![
        Value::Null,
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("x".repeat(100_000)),
        json!([]),
        json!({}),
        json!(true),
        json!("NaN"),
        json!("9".repeat(3_000_000)),
    ]);
    let index = any::<Index>;
    prop_oneof![
        1 => index().prop_map(Fault::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Fault::Bytes),
        1 => Just(Fault::Silence),
        1 => any::<u8>().prop_map(Fault::Exit),
        1 => Just(Fault::Die),
        1 => (1000..1_000_000_usize).prop_map(Fault::Nested),
        1 => Just(Fault::Close),
        1 => Just(Fault::Twice),
        4 => (index(), value).prop_map(|(at, value)| Fault::Replace(at, value)),
        1 => (1_000_000..10_000_000_usize).prop_map(Fault::Digits),
        2 => index().prop_map(Fault::Remove),
        2 => (index(), any::<u8>()).prop_map(|(at, byte)| Fault::Byte(at, byte)),
        1 => (1..20_000_000_usize).prop_map(Fault::Complain),
        1 => Just(Fault::Child),
    ]
}

/// The effect of the proxy of a round, and the answer.
fn drawn(round: Round) -> Result<(usize, Fault), Failed> {
    round.draw(&(0..ANSWERS, fault()))
}

/// A broken engine gets a verdict in time, never `conforms`, and leaves nothing behind.
pub(super) fn broken(round: Round, engine: &Path) -> Result<(), Failed> {
    let (at, fault) = drawn(round)?;
    let (workspace, folder) = (Workspace::new()?, tempfile::tempdir()?);
    let program = folder.path().join("engine");
    let (suite, engine) = (std::env::current_exe()?, engine.display());
    let (seed, number) = (round.seed, round.number);
    let script =
        format!("#!/bin/sh\nexec '{}' {BROKEN} {seed} {number} '{engine}'\n", suite.display());
    support::write_program(&program, &script)?;
    let program = program.display().to_string();
    let args = ["run", "--program", &program, "--time-limit", "3s", "--format", "json", FIXTURE];
    let output = run(&workspace, MEMORY, &args)?;
    let is_expected = match output.status.code() {
        Some(0) => !fault.breaks_the_protocol(),
        Some(1 | 3) => true,
        _ => false,
    };
    if !is_expected {
        return Err(failure("an unexpected verdict", &(at, fault), &output));
    }
    workspace.wait_until_empty().map_err(|left| format!("{at}, {fault:?}: {left}").into())
}

/// Serves the engine protocol as the proxy of a round.
pub(super) fn serve(seed: &str, number: &str, engine: &str) -> ExitCode {
    let number_of = |text: &str| text.parse().unwrap_or_default();
    let round = Round { seed: number_of(seed), number: number_of(number) };
    match drawn(round)
        .map_err(|failed| format!("{failed:?}"))
        .and_then(|(at, fault)| forward(engine, at, &fault).map_err(|error| error.to_string()))
    {
        Ok(code) => code,
        Err(error) => {
            // The harness shows it.
            drop(writeln!(io::stderr(), "the proxy failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Forwards requests to an engine, and its answers with a fault.
fn forward(engine: &str, at: usize, fault: &Fault) -> io::Result<ExitCode> {
    let mut child = Command::new(engine).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let requests = child.stdin.take();
    let forwarding = thread::spawn(move || {
        requests.map(|mut requests| io::copy(&mut io::stdin(), &mut requests))
    });
    let answers = child.stdout.take().map(BufReader::new);
    let mut out = io::stdout();
    for (index, line) in answers.into_iter().flat_map(BufReader::lines).enumerate() {
        let line = line?;
        if index != at {
            writeln!(out, "{line}")?;
            continue;
        }
        if let Some(code) = answer(&line, fault, &mut out, &mut child)? {
            return Ok(code);
        }
        out.flush()?;
    }
    child.wait()?;
    // It ends with the input.
    drop(forwarding);
    Ok(ExitCode::SUCCESS)
}

/// Answers with a fault. Returns a status if the proxy exits.
fn answer(
    line: &str,
    fault: &Fault,
    out: &mut impl Write,
    engine: &mut Child,
) -> io::Result<Option<ExitCode>> {
    match fault {
        // At least one byte is missing.
        Fault::Cut(end) => send(out, &line.as_bytes()[..end.index(line.len())])?,
        Fault::Bytes(bytes) => send(out, bytes)?,
        Fault::Silence => {}
        Fault::Exit(code) => return exit(engine, *code),
        Fault::Die => {
            let pid = std::process::id().to_string();
            Command::new("kill").args(["-SEGV", &pid]).status()?;
        }
        Fault::Nested(depth) => send(out, "[".repeat(*depth).as_bytes())?,
        Fault::Close => {
            exit(engine, 0)?;
            // Another program continues in this process, without the pipe.
            return Err(Command::new("sleep").arg("1000").stdout(Stdio::null()).exec());
        }
        Fault::Twice => send(out, format!("{line}\n{line}").as_bytes())?,
        Fault::Replace(place, value) => {
            send(out, edited(line, *place, Some(value))?.as_bytes())?;
        }
        Fault::Digits(length) => send(out, with_digits(line, *length)?.as_bytes())?,
        Fault::Remove(place) => send(out, edited(line, *place, None)?.as_bytes())?,
        Fault::Byte(place, byte) => {
            let mut bytes = line.as_bytes().to_vec();
            let place = place.index(bytes.len());
            bytes[place] = *byte;
            send(out, &bytes)?;
        }
        Fault::Complain(length) => {
            io::stderr().write_all(&vec![b'x'; *length])?;
            send(out, line.as_bytes())?;
        }
        Fault::Child => {
            // It outlives the proxy, with the same standard output.
            Command::new("sleep").arg("1000").spawn()?;
            return exit(engine, 0);
        }
    }
    Ok(None)
}

fn send(out: &mut impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}

fn exit(engine: &mut Child, code: u8) -> io::Result<Option<ExitCode>> {
    engine.kill()?;
    engine.wait()?;
    Ok(Some(ExitCode::from(code)))
}

/// An answer in which a quantity replaces the utilization of each target.
fn with_digits(line: &str, length: usize) -> io::Result<String> {
    let mut answer: Value = serde_json::from_str(line)?;
    let target = answer.pointer_mut("/stepped/api/0/stored/spec/metrics/0/resource/target");
    if let Some(target) = target {
        *target = json!({"type": "AverageValue", "averageValue": "9".repeat(length)});
    }
    Ok(answer.to_string())
}

/// An answer in which one value is replaced, or removed.
fn edited(line: &str, place: Index, by: Option<&Value>) -> io::Result<String> {
    let mut answer: Value = serde_json::from_str(line)?;
    let mut places = Vec::new();
    collect(&answer, &mut Vec::new(), &mut places);
    let place = place.get(&places);
    if let Some((last, above)) = place.split_last()
        && let Some(parent) = above.iter().try_fold(&mut answer, step)
    {
        match (by, parent) {
            (Some(value), parent) => *step(parent, last).expect("it exists") = value.clone(),
            (None, Value::Object(fields)) => drop(fields.remove(last)),
            (None, Value::Array(items)) => drop(items.remove(last.parse().expect("an index"))),
            (None, _) => {}
        }
    }
    Ok(answer.to_string())
}

/// A value in a collection, by its field or index.
fn step<'a>(value: &'a mut Value, part: &String) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(part),
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Collects the paths of all values in a value.
fn collect(value: &Value, path: &mut Vec<String>, places: &mut Vec<Vec<String>>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        _ => Vec::new(),
    };
    for (part, value) in parts {
        path.push(part);
        places.push(path.clone());
        collect(value, path, places);
        path.pop();
    }
}
