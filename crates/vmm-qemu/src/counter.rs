//! How fast the host's time stamp counter counts.
//!
//! Under emulation the guest reads the host's counter, and this machine has no other clock that a
//! kernel could measure it against but one that is polled. On a busy host that measurement fails,
//! and a kernel without it waits for ever for its first tick. So the kernel is told.

/// The rate in kHz, from the text of `/proc/cpuinfo`; `None` when that does not tell.
///
/// On a virtual host without the means to measure its present speed, the table shows the rate of
/// the counter. Anywhere else it shows a speed that changes, and a wrong rate is worse than none:
/// the guest's clock would run wrong, where without one the kernel measures by itself.
pub(crate) fn counter_khz(processor_table: &str) -> Option<u64> {
    let field = |name: &str| {
        processor_table.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then_some(value.trim())
        })
    };
    let flags = field("flags")?;
    let has = |wanted: &str| flags.split_ascii_whitespace().any(|flag| flag == wanted);
    if !has("hypervisor") || !has("constant_tsc") || has("aperfmperf") {
        return None;
    }
    let (whole, fraction) = field("cpu MHz")?.split_once('.')?;
    let thousandths = fraction.get(..3)?.parse::<u64>().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIRTUAL: &str = "processor\t: 0\ncpu MHz\t\t: 2499.998\n\
                           flags\t\t: fpu constant_tsc hypervisor\n";

    #[test]
    fn a_virtual_host_shows_the_rate_of_its_counter() {
        assert_eq!(counter_khz(VIRTUAL), Some(2_499_998));
    }

    #[test]
    fn a_speed_that_may_change_is_no_rate() {
        assert_eq!(counter_khz(&VIRTUAL.replace(" hypervisor", "")), None);
        assert_eq!(
            counter_khz(&VIRTUAL.replace("hypervisor", "hypervisor aperfmperf")),
            None
        );
        assert_eq!(counter_khz(&VIRTUAL.replace(" constant_tsc", "")), None);
        assert_eq!(counter_khz(&VIRTUAL.replace("2499.998", "fast")), None);
        assert_eq!(counter_khz(""), None);
    }
}
