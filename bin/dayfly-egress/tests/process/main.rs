//! The program itself: what it may and may not do, and the whole suite of the library against
//! it, under its own filter.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod posture;
#[cfg(test)]
#[path = "../../../../crates/egress/tests/suite/main.rs"]
mod suite;
