//! Views with parameters (2.13).
