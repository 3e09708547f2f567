//! Tests of the model of the recommender.
