//! The chart of settings by cost and missing pods.

/// A chart of two figures, with a dot for each setting.
#[derive(Clone, PartialEq, Debug)]
pub struct FrontChart {
    /// The name of the autoscaler.
    pub title: String,
    /// The result in some sentences.
    pub summary: String,
    /// The commands that apply the best setting.
    pub commands: Vec<String>,
    /// What the changes of the best setting contribute, and how it was checked.
    pub notes: Vec<String>,
    /// The name of the figure of the horizontal axis.
    pub across: &'static str,
    /// The name of the figure of the vertical axis.
    pub up: &'static str,
    /// The settings.
    pub dots: Vec<Dot>,
}

/// A setting in the chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Dot {
    /// The figure of the horizontal axis.
    pub across: f64,
    /// The figure of the vertical axis.
    pub up: f64,
    /// The setting is on the front: no other one is better in both figures.
    pub is_on_front: bool,
    /// The setting meets the objective.
    pub is_kept: bool,
    /// The name of the setting, if the table has it.
    pub name: Option<String>,
    /// The changes of the setting.
    pub about: String,
}
