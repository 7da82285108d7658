//! `dayfly-jail` as root on this host: what it launches, what it refuses, what it leaves behind.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod posture;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod support;
