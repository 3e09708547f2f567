//! The controller driven through its door.
