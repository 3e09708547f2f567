//! Tests of drawing and shrinking disturbances, with the model as the controller.
