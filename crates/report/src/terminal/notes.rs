//! The notes of a run of several scenarios: equal notes once, with all places and releases.

use std::collections::HashMap;

use crate::counted;
use crate::outcome::note_text;
use crate::places::also_at;
use kube_lockstep_sim::run::Outcome;

/// The most releases that a note names one by one.
const MOST_RELEASES: usize = 3;

/// The notes of a run so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    list: Vec<NoteOnReleases>,
    /// The indices of the notes.
    indices: HashMap<PlacedNote, usize>,
}

/// A note at its place.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct PlacedNote {
    place: String,
    what: String,
}

/// A note, and the releases for which it holds.
#[derive(Debug)]
struct NoteOnReleases {
    note: PlacedNote,
    releases: Vec<String>,
}

/// The text of notes and their releases.
#[derive(PartialEq, Eq, Hash)]
struct Message<'a> {
    what: &'a str,
    releases: &'a [String],
}

impl Notes {
    /// Adds the notes of an outcome; notes on how the file was read only if `all`. `release`: the
    /// release to name, in a run on several releases.
    pub(super) fn add(&mut self, outcome: &Outcome, all: bool, release: Option<&str>) {
        for note in outcome.notes.iter().filter(|note| all || !note.is_about_reading) {
            let note = PlacedNote { place: note.place(&outcome.path), what: note.what.clone() };
            let index = *self.indices.entry(note.clone()).or_insert(self.list.len());
            if index == self.list.len() {
                self.list.push(NoteOnReleases { note, releases: Vec::new() });
            }
            let releases = &mut self.list[index].releases;
            let is_new = |release: &&str| releases.iter().all(|known| known != release);
            releases.extend(release.filter(is_new).map(str::to_owned));
        }
    }

    /// The notes as text.
    pub(super) fn text(&self, columns: usize) -> String {
        let mut messages: Vec<Message<'_>> = Vec::new();
        let mut places: HashMap<Message<'_>, Vec<&str>> = HashMap::new();
        for NoteOnReleases { note: PlacedNote { place, what }, releases } in &self.list {
            let known_places = places.entry(Message { what, releases }).or_default();
            if known_places.is_empty() {
                messages.push(Message { what, releases });
            }
            known_places.push(place);
        }
        messages.iter().map(|message| text(message, &places[message], columns)).collect()
    }
}

fn text(message: &Message<'_>, places: &[&str], columns: usize) -> String {
    let Some((first, others)) = places.split_first() else { return String::new() };
    let mut text = format!("{first}: {}", message.what);
    match message.releases {
        [] => {}
        releases if releases.len() <= MOST_RELEASES => {
            text.push_str(&format!(" ({})", releases.join(", ")));
        }
        releases => text.push_str(&format!(" (on {})", counted(releases.len(), "release"))),
    }
    if !others.is_empty() {
        text.push_str(&format!("; {}", also_at(others)));
    }
    note_text(&text, columns)
}
