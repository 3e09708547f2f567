//! Tests of the model of the recommender, with numbers that upstream's code has produced.

mod containers;
mod histograms;
mod numbers;
mod observed_ooms;
mod runs;
