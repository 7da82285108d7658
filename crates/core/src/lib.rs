//! Rules without I/O and without a clock: lifecycle, admission, whose turn it is,
//! expiry, egress, clocks, when memory is given back.
//!
//! Time and randomness are arguments. Everything here is a pure function, so that property tests
//! and simulations can cover it. Start reading at [`lifecycle`].
#![forbid(unsafe_code)]

pub mod admission;
pub mod egress;
pub mod expiry;
pub mod fair_line;
pub mod give_back;
pub mod lifecycle;
pub mod pressure;
pub mod rounds;
pub mod wall_clock;
