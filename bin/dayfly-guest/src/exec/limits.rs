//! What one exec may use.

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::exec::ExecLimits;
use dayfly_types::limits::{EXEC_MEMORY_MIB_MIN, EXEC_PROCESSES_MAX};

/// The soonest that it is worth to look at a budget again.
const LOOK_AGAIN_MS: u64 = 10;

/// Refuses limits that nobody can keep.
pub(super) fn check(limits: &ExecLimits, has_groups: bool) -> Result<(), GuestError> {
    let refuse = |code, text: &str| Err(GuestError::new(code, text));
    if *limits != ExecLimits::default() && !has_groups {
        return refuse(
            GuestErrorCode::Unsupported,
            "this guest cannot limit one exec",
        );
    }
    let invalid = GuestErrorCode::Invalid;
    if limits
        .memory_bytes
        .is_some_and(|bytes| bytes < EXEC_MEMORY_MIB_MIN << 20)
    {
        return refuse(invalid, "no process can live with so little memory");
    }
    if limits.cpu_ms == Some(0) {
        return refuse(invalid, "no process can live without processor time");
    }
    let processes = limits.processes_max.map(u64::from);
    if processes.is_some_and(|count| count == 0 || count > EXEC_PROCESSES_MAX) {
        return refuse(invalid, "the number of processes is out of range");
    }
    Ok(())
}

/// Processor time that an exec may use. It is looked at when it could be gone at the earliest, not
/// all the time.
#[derive(Debug)]
pub(super) struct CpuBudget {
    budget_us: u64,
    look_ms: u64,
}

impl CpuBudget {
    pub(super) fn new(budget_ms: u64, now_ms: u64) -> Self {
        let mut budget = Self {
            budget_us: budget_ms.saturating_mul(1000),
            look_ms: 0,
        };
        budget.plan(0, now_ms);
        budget
    }

    pub(super) const fn look_ms(&self) -> u64 {
        self.look_ms
    }

    pub(super) fn allow_more_time(&mut self, more_ms: u64) {
        self.look_ms = self.look_ms.saturating_add(more_ms);
    }

    /// Whether so much is too much. If not, it is looked at again in time.
    pub(super) fn is_spent(&mut self, used_us: u64, now_ms: u64) -> bool {
        self.plan(used_us, now_ms);
        used_us >= self.budget_us
    }

    fn plan(&mut self, used_us: u64, now_ms: u64) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let left_ms = self.budget_us.saturating_sub(used_us) / 1000 / processors;
        self.look_ms = now_ms.saturating_add(left_ms.max(LOOK_AGAIN_MS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_looked_at_no_sooner_than_it_can_be_gone() {
        let processors = std::thread::available_parallelism().unwrap().get() as u64;
        let mut budget = CpuBudget::new(1000 * processors, 5000);
        assert_eq!(budget.look_ms(), 6000);
        assert!(!budget.is_spent(500_000 * processors, 6000));
        assert_eq!(budget.look_ms(), 6500);
        assert!(!budget.is_spent(1_000_000 * processors - 1, 6500));
        assert_eq!(budget.look_ms(), 6510);
        budget.allow_more_time(90);
        assert_eq!(budget.look_ms(), 6600);
        assert!(budget.is_spent(1_000_000 * processors, 6600));
    }

    #[test]
    fn limits_need_groups_and_sense() {
        let none = ExecLimits::default();
        check(&none, false).unwrap();
        let memory = |bytes| ExecLimits {
            memory_bytes: Some(bytes),
            ..none
        };
        let code = |limits, has_groups| check(&limits, has_groups).unwrap_err().code;
        assert_eq!(code(memory(1 << 30), false), GuestErrorCode::Unsupported);
        check(&memory(4 << 20), true).unwrap();
        assert_eq!(code(memory(1 << 20), true), GuestErrorCode::Invalid);
        let cpu_ms = Some(0);
        assert_eq!(
            code(ExecLimits { cpu_ms, ..none }, true),
            GuestErrorCode::Invalid
        );
        for count in [0, 4097] {
            let processes_max = Some(count);
            let limits = ExecLimits {
                processes_max,
                ..none
            };
            assert_eq!(code(limits, true), GuestErrorCode::Invalid);
        }
    }
}
