//! Variables of the environment (2.11).
