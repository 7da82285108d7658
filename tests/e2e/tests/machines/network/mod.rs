//! A hostile guest on a real machine against the whole way out: its kernel, its tap, the rules of
//! its slot, the process that decides, and an internet that counts what arrives.
//!
//! The letters and numbers in the names of tests are those of the list of attacks in
//! `docs/security`. Whatever must not leave is counted where it would have arrived, and each test
//! also shows that the same probe gets through where it may.

#[cfg(test)]
mod broken;
#[cfg(test)]
mod builds;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod dns;
#[cfg(test)]
mod dns_around;
#[cfg(test)]
mod floods;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod http;
#[cfg(test)]
mod internal;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod mirror;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod observe;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod tls;
