//! The proxy against a hostile guest, in real network namespaces.
//!
//! Every case that must let nothing out counts at the attacker's own server, and shows beside it
//! that the same probe gets through where it may.

#[cfg(test)]
pub(crate) use dayfly_netlab::{certificates, internet, name_server};

#[cfg(test)]
mod control_cases;
#[cfg(test)]
mod dns_cases;
#[cfg(test)]
pub(crate) mod guest;
#[cfg(test)]
mod http_cases;
#[cfg(test)]
mod internal_attacks;
#[cfg(test)]
mod internal_cases;
#[cfg(test)]
mod killed_case;
#[cfg(test)]
mod limits_cases;
#[cfg(test)]
mod policy_cases;
#[cfg(test)]
pub(crate) mod proxy;
#[cfg(test)]
pub(crate) mod slot;
#[cfg(test)]
mod tcp_cases;
#[cfg(test)]
mod tls_cases;
#[cfg(test)]
mod upstream_cases;
#[cfg(test)]
pub(crate) mod world;
