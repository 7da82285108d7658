//! Kernel settings of a namespace. The kernel shows each thread those of its own.

use std::fs;
use std::io;

use super::error::Failed;

/// One setting, by its path below `/proc/sys/net`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sysctl {
    pub(super) path: &'static str,
    pub(super) value: &'static str,
    pub(super) need: Need,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Must,
    /// A kernel without the feature has nothing to set.
    IfThere,
    /// A second line behind something that holds already.
    IfAllowed,
}

const fn must(path: &'static str, value: &'static str) -> Sysctl {
    let need = Need::Must;
    Sysctl { path, value, need }
}

const fn if_there(path: &'static str, value: &'static str) -> Sysctl {
    let need = Need::IfThere;
    Sysctl { path, value, need }
}

/// A namespace starts with the host's own values for IPv4, whatever those are. Writing the first
/// resets many of the others, so it comes first. Interfaces that are made later take the values
/// under `default`.
pub(super) const CLOSED: [Sysctl; 25] = [
    must("ipv4/ip_forward", "0"),
    if_there("ipv6/conf/all/disable_ipv6", "1"),
    if_there("ipv6/conf/default/disable_ipv6", "1"),
    must("ipv4/conf/all/rp_filter", "1"),
    must("ipv4/conf/default/rp_filter", "1"),
    must("ipv4/conf/all/accept_local", "0"),
    must("ipv4/conf/default/accept_local", "0"),
    must("ipv4/conf/all/route_localnet", "0"),
    must("ipv4/conf/default/route_localnet", "0"),
    must("ipv4/conf/all/accept_source_route", "0"),
    must("ipv4/conf/default/accept_source_route", "0"),
    must("ipv4/conf/all/accept_redirects", "0"),
    must("ipv4/conf/default/accept_redirects", "0"),
    must("ipv4/conf/all/send_redirects", "0"),
    must("ipv4/conf/default/send_redirects", "0"),
    must("ipv4/conf/all/proxy_arp", "0"),
    must("ipv4/conf/default/proxy_arp", "0"),
    // Answer for the address of the very interface, to nobody outside its subnet.
    must("ipv4/conf/all/arp_ignore", "2"),
    must("ipv4/conf/default/arp_ignore", "2"),
    must("ipv4/conf/all/arp_announce", "2"),
    must("ipv4/conf/default/arp_announce", "2"),
    must("ipv4/conf/all/arp_accept", "0"),
    must("ipv4/conf/default/arp_accept", "0"),
    must("ipv4/icmp_echo_ignore_broadcasts", "1"),
    must("ipv4/icmp_echo_ignore_all", "1"),
];

/// For a slot alone: refusals are limited by its rules, and not by a limit that it would share
/// with the whole host.
pub(super) const SLOT_ANSWERS: [Sysctl; 1] = [must("ipv4/icmp_ratemask", "0")];

/// How much a guest can make the kernel remember. These exist once there are rules that track.
/// Without `loose`, a packet of a connection that this namespace has never seen, such as one from
/// before a restore, is answered with a reset.
pub(super) const TRACKING: [Sysctl; 6] = [
    if_there("netfilter/nf_conntrack_tcp_loose", "0"),
    if_there("netfilter/nf_conntrack_tcp_timeout_syn_sent", "30"),
    if_there("netfilter/nf_conntrack_tcp_timeout_syn_recv", "30"),
    if_there("netfilter/nf_conntrack_tcp_timeout_time_wait", "10"),
    if_there("netfilter/nf_conntrack_udp_timeout_stream", "30"),
    // Only some kernels have this for each namespace.
    Sysctl {
        path: "netfilter/nf_conntrack_max",
        value: "8192",
        need: Need::IfAllowed,
    },
];

/// Writes settings in the namespace of the calling thread.
pub(super) fn apply(settings: &[Sysctl]) -> Result<(), Failed> {
    for setting in settings {
        let written = fs::write(full_path(setting.path), setting.value);
        let is_forgiven = match (&written, setting.need) {
            (Ok(()), _) | (Err(_), Need::IfAllowed) => true,
            (Err(error), Need::IfThere) => error.kind() == io::ErrorKind::NotFound,
            (Err(_), Need::Must) => false,
        };
        if !is_forgiven {
            written.map_err(Failed::at(format!("set {}", setting.path)))?;
        }
    }
    Ok(())
}

/// Whether settings are as they were written. What could be absent is not asked for.
pub(super) fn hold(settings: &[Sysctl]) -> Result<bool, Failed> {
    for setting in settings.iter().filter(|setting| setting.need == Need::Must) {
        if read(setting.path)? != setting.value {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn read(path: &str) -> Result<String, Failed> {
    let text = fs::read_to_string(full_path(path)).map_err(Failed::at(format!("read {path}")))?;
    Ok(text.trim().to_owned())
}

pub(super) fn write(path: &str, value: &str) -> Result<(), Failed> {
    fs::write(full_path(path), value).map_err(Failed::at(format!("set {path}")))
}

fn full_path(path: &str) -> String {
    format!("/proc/sys/net/{path}")
}
