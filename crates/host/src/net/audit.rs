//! Looking whether the rules are still the ones that were loaded.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::egress::Uplink;
use super::error::{Failed, NetworkError, within};
use super::slot::{self, RULES};
use super::{EgressExceptions, TAP, egress_rules, generation, interface_names, nat, nft, sysctl};

/// How the rules of a slot are listed on this host, once that was asked.
static EXPECTED: Mutex<Option<String>> = Mutex::new(None);

/// Whether a slot is as shut as it was made: the rules are exactly ours and nobody else's, there
/// is no interface but the tap, and nothing is forwarded.
///
/// Runs a program. Between two of these, [`slot_rules_version`] is a cheap way to learn that
/// nothing has changed.
///
/// # Errors
/// [`NetworkError`] when it cannot be found out.
pub fn slot_rules_hold(netns: &Path) -> Result<bool, NetworkError> {
    let listed = within(netns, || {
        let is_closed = sysctl::hold(&sysctl::CLOSED)? && has_only_the_tap()?;
        if is_closed {
            nft::list_all().map(Some)
        } else {
            Ok(None)
        }
    })?;
    let Some(listed) = listed else {
        return Ok(false);
    };
    let known = EXPECTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    if known.is_some_and(|expected| expected == listed) {
        return Ok(true);
    }
    // Perhaps never asked, or the program that lists was replaced since.
    let expected = nft::canonical(RULES.to_owned(), slot::open).map_err(Failed::on_host)?;
    let holds = expected == listed;
    *EXPECTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(expected);
    Ok(holds)
}

/// Names one state of the packet rules of one namespace: it is another one after every change, by
/// anybody. The kernel uses the number of a namespace again when that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesVersion {
    namespace: u64,
    generation: u32,
}

/// Who reads a version, finds after that that the rules hold, and later reads the same version
/// again, need not look at the rules. The order matters: a version that is read after the look may
/// already be that of a change.
///
/// # Errors
/// [`NetworkError`].
pub fn slot_rules_version(netns: &Path) -> Result<RulesVersion, NetworkError> {
    within(netns, || {
        let namespace = fs::metadata("/proc/thread-self/ns/net")
            .map_err(Failed::at("read the number of the namespace"))?;
        Ok(RulesVersion {
            namespace: namespace.ino(),
            generation: generation::read()
                .map_err(Failed::at("read the generation of packet rules"))?,
        })
    })
}

/// Loads the rules and settings of a slot anew, as one transaction that also removes what took
/// their place. Open connections go on. An interface that was added stays; nothing forwards to it.
///
/// # Errors
/// [`NetworkError`]; the rules are then as they were.
pub fn restore_slot_rules(netns: &Path) -> Result<(), NetworkError> {
    within(netns, || {
        sysctl::apply(&sysctl::CLOSED)?;
        sysctl::apply(&sysctl::SLOT_ANSWERS)?;
        nft::load(&format!("flush ruleset\n{RULES}"))
    })
}

/// Whether the table in the egress namespace is exactly ours, and with [`Uplink::Nat`] also the
/// host's table and link for it. Call [`super::ensure_egress_namespace`] when they are not.
///
/// # Errors
/// [`NetworkError`] when it cannot be found out.
pub fn egress_rules_hold(
    path: &Path,
    instance: &str,
    uplink: &Uplink,
    exceptions: &EgressExceptions,
) -> Result<bool, NetworkError> {
    let exceptions = egress_rules::check(exceptions)?;
    let path = match uplink {
        Uplink::Namespace(theirs) => theirs,
        Uplink::None | Uplink::Nat => path,
    };
    let rules = egress_rules::write(&exceptions);
    let expected = nft::canonical(rules, || Ok(())).map_err(Failed::on_host)?;
    let listed = within(path, || nft::list_table(egress_rules::TABLE))?;
    let holds = listed.is_some_and(|listed| listed == expected);
    match uplink {
        Uplink::Nat if holds => nat::holds(path, instance, &exceptions),
        Uplink::Nat | Uplink::None | Uplink::Namespace(_) => Ok(holds),
    }
}

fn has_only_the_tap() -> Result<bool, Failed> {
    let mut names = interface_names().map_err(Failed::at("list the interfaces"))?;
    names.sort_unstable();
    Ok(names == ["lo", TAP])
}
