//! Scenarios for the tests of this module.
