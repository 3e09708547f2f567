//! A prediction of the model for one kind of controller: everything that reports show of it.

use std::io::{self, Write};

use super::blocks::Block;
use super::{Detail, Mark, Presentation};
use crate::table::Contents;
use crate::table::Rows;
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_sim::run::{Note, RandomOutcome};

/// A prediction for one kind of controller.
pub(crate) trait Prediction<'a> {
    /// The scenario, and the parts that all predictions have.
    fn head(&self) -> Head<'a>;

    /// The numbers of a prediction.
    fn figures(&self) -> Figures;

    /// The number of expectations that apply.
    fn expectations(&self) -> usize;

    /// Why the expectations of the scenario are not checked on the release, if they are not.
    fn other_release(&self) -> Option<String>;

    /// The charts. `mark`: the first tick that differs from another release.
    fn presentation(&self, mark: Option<Mark<'a>>, detail: Detail) -> Presentation<'a>;

    /// The text below the name of the scenario.
    fn text(&self, contents: Contents) -> Vec<Block>;

    /// The ticks for spreadsheets: a header, and rows below it.
    fn csv(&self, rows: Rows) -> Vec<Vec<String>>;

    /// Writes the ticks as lines of JSON. `scenario`: the id of the scenario, if each line has it.
    ///
    /// # Errors
    /// If writing fails.
    fn write_lines(
        &self,
        out: &mut dyn Write,
        rows: Rows,
        scenario: Option<&str>,
    ) -> io::Result<()>;
}

/// The scenario of a prediction, and the parts that all predictions have.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub requirement: &'a str,
    pub release: String,
    pub notes: &'a [Note],
    pub undetermined: Option<&'a RandomOutcome>,
}

/// The numbers of a prediction, and why the release does not support the scenario.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub ticks: usize,
    /// The number of changes of replicas by the controller, if it changes replicas.
    pub rescales: Option<usize>,
    /// The release of the VPA, if the scenario has an HPA and a VPA.
    pub vpa_release: Option<String>,
    pub skipped: Option<SkipReason>,
    /// The HPA that the API server refuses at the start, if it does.
    pub refused: Option<String>,
}
