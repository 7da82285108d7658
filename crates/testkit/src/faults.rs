//! Faults that a test orders ahead of time.

use std::sync::{Mutex, PoisonError};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation answers with an error.
    Fail,
    /// The operation never answers.
    Hang,
    /// The engine process ends while the operation runs.
    Exit,
}

/// The orders for the operations of one fake.
#[derive(Debug)]
pub struct Faults<Operation> {
    orders: Mutex<Vec<Order<Operation>>>,
}

#[derive(Debug)]
struct Order<Operation> {
    operation: Operation,
    calls_left: usize,
    fault: Fault,
}

impl<Operation> Default for Faults<Operation> {
    fn default() -> Self {
        Self {
            orders: Mutex::new(Vec::new()),
        }
    }
}

impl<Operation: Copy + Eq> Faults<Operation> {
    /// Makes the `nth` call from now of an operation go wrong; 1 is the next one.
    pub fn order(&self, operation: Operation, nth: usize, fault: Fault) {
        let calls_left = nth.max(1);
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push(Order {
            operation,
            calls_left,
            fault,
        });
    }

    /// Counts one call and tells what shall go wrong with it.
    pub fn next(&self, operation: Operation) -> Option<Fault> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        for order in orders
            .iter_mut()
            .filter(|order| order.operation == operation)
        {
            order.calls_left -= 1;
        }
        let due = orders.iter().position(|order| order.calls_left == 0)?;
        Some(orders.remove(due).fault)
    }
}

/// The source of every ordered error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fault that the test ordered")]
pub struct Ordered;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_fails_and_no_other() {
        let faults = Faults::default();
        faults.order('a', 2, Fault::Fail);
        faults.order('b', 1, Fault::Hang);
        assert_eq!(faults.next('a'), None);
        assert_eq!(faults.next('b'), Some(Fault::Hang));
        assert_eq!(faults.next('a'), Some(Fault::Fail));
        assert_eq!(faults.next('a'), None);
    }

    #[test]
    fn two_orders_for_two_calls_both_come_due() {
        let faults = Faults::default();
        faults.order('a', 1, Fault::Fail);
        faults.order('a', 2, Fault::Exit);
        assert_eq!(faults.next('a'), Some(Fault::Fail));
        assert_eq!(faults.next('a'), Some(Fault::Exit));
    }
}
