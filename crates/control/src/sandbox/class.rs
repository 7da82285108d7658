//! How much of its size a sandbox is promised.

use dayfly_api::PromiseClass;
use dayfly_node_api::SharingStatus;
use dayfly_types::SandboxClass;

use crate::input::Invalid;

pub(crate) const fn of_wire(class: PromiseClass) -> SandboxClass {
    match class {
        PromiseClass::Reserved => SandboxClass::Reserved,
        PromiseClass::Shared => SandboxClass::Shared,
    }
}

pub(crate) const fn to_wire(class: SandboxClass) -> PromiseClass {
    match class {
        SandboxClass::Reserved => PromiseClass::Reserved,
        SandboxClass::Shared => PromiseClass::Shared,
    }
}

/// The class of a new sandbox on a host that shares like this.
///
/// # Errors
/// [`Invalid`] when a shared one is wanted where there are none: its user would believe that the
/// host holds more than it does.
pub(crate) fn decide(
    wanted: Option<SandboxClass>,
    sharing: &SharingStatus,
) -> Result<SandboxClass, Invalid> {
    let has_shared = sharing.memory > 1;
    match wanted {
        Some(SandboxClass::Shared) if !has_shared => {
            let rule = "must be reserved: this host has no shared sandboxes; its operator can \
                        allow them with memory_share";
            Err(Invalid::field("class", rule))
        }
        Some(class) => Ok(class),
        None if has_shared => Ok(SandboxClass::Shared),
        None => Ok(SandboxClass::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_is_shared_where_the_host_shares() {
        let alone = SharingStatus::default();
        let shared = SharingStatus {
            memory: 4,
            ..SharingStatus::default()
        };
        let decided = |wanted, sharing| decide(wanted, sharing).ok();
        assert_eq!(decided(None, &alone), Some(SandboxClass::Reserved));
        assert_eq!(decided(None, &shared), Some(SandboxClass::Shared));
        for sharing in [&alone, &shared] {
            let reserved = Some(SandboxClass::Reserved);
            assert_eq!(decided(reserved, sharing), reserved);
        }
        assert_eq!(decided(Some(SandboxClass::Shared), &alone), None);
        let wanted = Some(SandboxClass::Shared);
        assert_eq!(decided(wanted, &shared), wanted);
    }
}
