//! What this node has promised, and the one place where promises are made.
//!
//! A disk is promised in full and written bit by bit, so the account knows for each promise how
//! much of it is written already: the rest is still owed, and nothing else may take it. Whatever
//! needs room beside the promises, a capture, a merge or a new volume, books the most that it can
//! write before it begins.
//!
//! On a host that shares, a shared sandbox is promised a part of its memory and counts with what it
//! has touched where that is more. How much that is, and what the host has left, is noted here by
//! [`crate::relief`] at a steady pace, so that nobody who asks for room has to look.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_core::admission::{self, Capacity, Committed, Demand, Refusal, Sharing};
use dayfly_core::pressure::MemoryStall;
use dayfly_host::memory_pressure::StallTrigger;
use dayfly_types::SandboxClass;

use crate::written::written_mib;

pub use crate::host_resources::{EngineLoad, HostResources, RealResources};

/// What is kept for the host, in MiB.
#[derive(Debug, Clone, Copy)]
pub struct Reserve {
    pub memory_mib: u64,
    pub disk_mib: u64,
}

/// The account of promises.
#[derive(Debug)]
pub struct Ledger {
    resources: Box<dyn HostResources>,
    reserve: Reserve,
    sharing: Sharing,
    /// What the host had left when it was looked at last, on a host that shares.
    memory_available_mib: AtomicU64,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    next: u64,
    promises: BTreeMap<u64, Account>,
    /// What all promises come to, kept so that a create costs the same beside any number of them.
    promised: Committed,
    volumes: VolumeAccount,
    booked_mib: u64,
}

#[derive(Debug)]
struct Account {
    demand: Demand,
    class: SandboxClass,
    /// What it has touched of memory when somebody looked last.
    memory_used_mib: u64,
    /// Where its disk is, once it has one.
    directory: Option<PathBuf>,
    used_mib: u64,
}

impl Account {
    /// A shared sandbox may touch more than it was promised, and what it has it keeps.
    fn memory_mib(&self) -> u64 {
        match self.class {
            SandboxClass::Reserved => self.demand.memory_mib,
            SandboxClass::Shared => self.demand.memory_mib.max(self.memory_used_mib),
        }
    }

    fn owed_mib(&self) -> u64 {
        self.demand.disk_mib.saturating_sub(self.used_mib)
    }

    /// Its part of what is committed.
    fn part(&self) -> Committed {
        Committed {
            memory_mib: self.memory_mib(),
            memory_owed_mib: self.demand.memory_mib.saturating_sub(self.memory_used_mib),
            disk_mib: self.demand.disk_mib,
            // What is written beyond the promise is owed to nobody.
            disk_used_mib: self.used_mib.min(self.demand.disk_mib),
            ..Committed::default()
        }
    }
}

/// The volumes of a node together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VolumeAccount {
    pub promised_mib: u64,
    /// Never more than promised.
    pub used_mib: u64,
}

impl Accounts {
    fn committed(&self) -> Committed {
        let mut committed = self.promised;
        committed.disk_mib += self.volumes.promised_mib;
        committed.disk_used_mib += self.volumes.used_mib;
        committed.disk_booked_mib += self.booked_mib;
        committed
    }

    /// Changes one promise, if it is still there, and the sum with it.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.promises.get_mut(&number) {
            let before = account.part();
            change(account);
            let after = account.part();
            self.promised.add(after);
            self.promised.take_away(before);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(account) = self.promises.remove(&number) {
            self.promised.take_away(account.part());
        }
    }

    fn open(&mut self, class: SandboxClass, demand: Demand) -> u64 {
        let number = self.next;
        self.next += 1;
        let account = Account {
            demand,
            class,
            memory_used_mib: 0,
            directory: None,
            used_mib: 0,
        };
        self.promised.add(account.part());
        self.promises.insert(number, account);
        number
    }
}

/// One promise. Dropping it takes the promise back.
#[derive(Debug)]
pub struct Promise {
    ledger: Arc<Ledger>,
    number: u64,
}

/// Which promise it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromiseNumber(u64);

impl Promise {
    #[must_use]
    pub fn number(&self) -> PromiseNumber {
        PromiseNumber(self.number)
    }

    /// Says where the disk is that was promised, so that what is written of it can be seen.
    pub fn is_kept_in(&self, directory: PathBuf) {
        self.ledger.lock().change(self.number, |account| {
            account.directory = Some(directory);
            account.used_mib = 0;
        });
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.ledger.lock().close(self.number);
    }
}

/// Room for something that is about to be written. Dropping it gives the room back; by then what
/// was written is missing from the disk.
#[derive(Debug)]
pub struct Booking {
    ledger: Arc<Ledger>,
    mib: u64,
    /// Whose disk layer is sealed under this booking. What it wrote so far is not its own any
    /// more, and all that it was promised is owed to it again.
    seals: Option<u64>,
}

impl Booking {
    /// Says that the holder of `promise` gets an empty disk layer under this booking.
    pub(crate) fn seals(&mut self, promise: Option<&Promise>) {
        self.seals = promise.map(|promise| promise.number);
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        let mut accounts = self.ledger.lock();
        accounts.booked_mib = accounts.booked_mib.saturating_sub(self.mib);
        if let Some(number) = self.seals {
            accounts.change(number, |account| account.used_mib = 0);
        }
    }
}

impl Ledger {
    #[must_use]
    pub fn new(resources: Box<dyn HostResources>, reserve: Reserve) -> Self {
        Self {
            resources,
            reserve,
            sharing: Sharing::NONE,
            memory_available_mib: AtomicU64::new(0),
            accounts: Mutex::default(),
        }
    }

    /// The same account on a host that shares.
    #[must_use]
    pub fn shared(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        if sharing.is_on() {
            self.look_at_host();
        }
        self
    }

    /// How this host shares.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        // Nothing in a change below can panic, so a panic elsewhere leaves no half of one.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            memory_total_mib: self.resources.memory_total_mib(),
            memory_reserve_mib: self.reserve.memory_mib,
            memory_available_mib: self
                .sharing
                .is_on()
                .then(|| self.memory_available_mib.load(Ordering::SeqCst)),
            disk_available_mib: self.resources.disk_available_mib(),
            disk_reserve_mib: self.reserve.disk_mib,
        }
    }

    /// How many the host has.
    pub(crate) fn processors(&self) -> usize {
        self.resources.processors()
    }

    /// Free space of the data directory, in MiB. Asks the file system.
    pub(crate) fn disk_available_mib(&self) -> u64 {
        self.resources.disk_available_mib()
    }

    /// Promises `demand`, or says what is short.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was promised.
    pub fn promise(self: &Arc<Self>, demand: Demand) -> Result<Promise, Refusal> {
        self.promise_to(SandboxClass::Reserved, demand)
    }

    /// What a guest of this size is promised here.
    #[must_use]
    pub fn demand(&self, class: SandboxClass, memory_mib: u64, disk_mib: u64) -> Demand {
        Demand::of(class, self.sharing, memory_mib, disk_mib)
    }

    /// As [`Ledger::promise`], to a sandbox of a class.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was promised.
    pub fn promise_to(
        self: &Arc<Self>,
        class: SandboxClass,
        demand: Demand,
    ) -> Result<Promise, Refusal> {
        let capacity = self.capacity();
        let mut accounts = self.lock();
        admission::admit(capacity, accounts.committed(), demand)?;
        let number = accounts.open(class, demand);
        drop(accounts);
        Ok(Promise {
            ledger: Arc::clone(self),
            number,
        })
    }

    /// Notes a sandbox that runs already, whether or not it would be admitted now.
    pub fn note(self: &Arc<Self>, class: SandboxClass, demand: Demand) -> Promise {
        let number = self.lock().open(class, demand);
        Promise {
            ledger: Arc::clone(self),
            number,
        }
    }

    /// Books room that is neither kept back nor promised to anybody. Two that ask at once cannot
    /// both get the same.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was booked.
    pub fn book(self: &Arc<Self>, mib: u64) -> Result<Booking, Refusal> {
        self.book_beside(mib, None)
    }

    /// As [`Ledger::book`], for somebody who until then writes nothing of what it is still owed,
    /// and gives the promise up in the end: that much needs no booking, but must be there.
    ///
    /// # Errors
    /// [`Refusal`]; nothing was booked.
    pub fn book_beside(
        self: &Arc<Self>,
        mib: u64,
        promise: Option<PromiseNumber>,
    ) -> Result<Booking, Refusal> {
        let capacity = self.capacity();
        let mut accounts = self.lock();
        let account = promise.and_then(|number| accounts.promises.get(&number.0));
        let owed = account.map_or(0, Account::owed_mib);
        let more = mib.saturating_sub(owed);
        if mib > capacity.disk_available_mib {
            return Err(Refusal::Disk {
                wanted_mib: mib,
                left_mib: capacity.disk_available_mib,
            });
        }
        admission::book(capacity, accounts.committed(), more)?;
        accounts.booked_mib += more;
        drop(accounts);
        Ok(Booking {
            ledger: Arc::clone(self),
            mib: more,
            seals: None,
        })
    }

    /// Notes what the node's volumes are promised and have written.
    pub fn set_volumes(&self, volumes: VolumeAccount) {
        self.lock().volumes = volumes;
    }

    /// Looks what the host has left of its memory. Blocks for a moment.
    pub(crate) fn look_at_host(&self) {
        let available = self.resources.memory_available_mib();
        self.memory_available_mib.store(available, Ordering::SeqCst);
    }

    /// How much the host stalls on memory. Blocks for a moment.
    pub(crate) fn memory_stall(&self) -> Option<MemoryStall> {
        self.resources.memory_stall()
    }

    /// What an engine has used. Blocks for a moment.
    pub(crate) fn engine_load(&self, pid: i32) -> Option<EngineLoad> {
        self.resources.engine_load(pid)
    }

    pub(crate) fn stall_trigger(&self) -> Option<StallTrigger> {
        self.resources.stall_trigger()
    }

    /// What taking a promise back would give of memory.
    pub(crate) fn memory_mib(&self, promise: PromiseNumber) -> u64 {
        let accounts = self.lock();
        accounts
            .promises
            .get(&promise.0)
            .map_or(0, Account::memory_mib)
    }

    /// Notes what the holders of these promises have touched of memory.
    pub(crate) fn note_memory(&self, used: &[(PromiseNumber, u64)]) {
        let mut accounts = self.lock();
        for (number, used_mib) in used {
            accounts.change(number.0, |account| account.memory_used_mib = *used_mib);
        }
    }

    /// Where the disks are that were promised.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let accounts = self.lock();
        let kept = accounts.promises.values();
        kept.filter_map(|account| account.directory.clone())
            .collect()
    }

    /// How much of a promise was written when somebody looked last.
    pub(crate) fn used_mib(&self, promise: PromiseNumber) -> u64 {
        let accounts = self.lock();
        let account = accounts.promises.get(&promise.0);
        account.map_or(0, |account| account.used_mib)
    }

    /// Looks how much of each promise is written by now. Blocks.
    pub(crate) fn look(&self) {
        let kept: Vec<(u64, PathBuf)> = {
            let accounts = self.lock();
            let kept = accounts.promises.iter();
            kept.filter_map(|(number, account)| Some((*number, account.directory.clone()?)))
                .collect()
        };
        for (number, directory) in kept {
            let used_mib = written_mib(&directory);
            let mut accounts = self.lock();
            // Meanwhile the promise may be gone, or be kept elsewhere.
            accounts.change(number, |account| {
                if account.directory.as_ref() == Some(&directory) {
                    account.used_mib = used_mib;
                }
            });
        }
    }

    /// What the host has and what is promised.
    #[must_use]
    pub fn view(&self) -> (Capacity, Committed) {
        (self.capacity(), self.lock().committed())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct Disk(Arc<AtomicU64>);

    impl HostResources for Disk {
        fn memory_total_mib(&self) -> u64 {
            1 << 20
        }

        fn memory_available_mib(&self) -> u64 {
            1 << 20
        }

        fn disk_available_mib(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn ledger(available: u64, reserve: u64) -> (Arc<Ledger>, Arc<AtomicU64>) {
        let disk = Arc::new(AtomicU64::new(available));
        let reserve = Reserve {
            memory_mib: 0,
            disk_mib: reserve,
        };
        let resources = Box::new(Disk(Arc::clone(&disk)));
        (Arc::new(Ledger::new(resources, reserve)), disk)
    }

    fn disk_of(mib: u64) -> Demand {
        Demand {
            memory_mib: 1,
            disk_mib: mib,
        }
    }

    #[test]
    fn a_booking_takes_neither_the_reserve_nor_what_is_promised() {
        let (ledger, _) = ledger(1000, 200);
        let _promise = ledger.promise(disk_of(500)).unwrap();
        let refusal = ledger.book(301).unwrap_err();
        let expected = Refusal::Disk {
            wanted_mib: 301,
            left_mib: 300,
        };
        assert_eq!(refusal, expected);
        let booking = ledger.book(300).unwrap();
        assert!(ledger.book(1).is_err(), "the same room was given twice");
        assert!(ledger.promise(disk_of(1)).is_err());
        drop(booking);
        assert!(ledger.book(300).is_ok());
    }

    #[test]
    fn what_is_written_of_a_promise_is_not_owed_any_more_until_it_is_sealed() {
        let (ledger, available) = ledger(1000, 0);
        let promise = ledger.promise(disk_of(500)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        promise.is_kept_in(directory.path().to_owned());
        std::fs::write(directory.path().join("disk.img"), vec![1; 100 << 20]).unwrap();
        available.store(900, Ordering::SeqCst);
        ledger.look();
        let mut booking = ledger.book(500).expect("100 of 500 are written");
        assert!(ledger.book(1).is_err());
        booking.seals(Some(&promise));
        drop(booking);
        assert!(ledger.book(401).is_err(), "all 500 are owed again");
        assert!(ledger.book(400).is_ok());
    }

    #[test]
    fn who_gives_its_promise_up_may_write_that_much() {
        let (ledger, available) = ledger(1000, 0);
        let promise = ledger.promise(disk_of(900)).unwrap();
        assert!(ledger.book(101).is_err());
        let booking = ledger.book_beside(950, Some(promise.number())).unwrap();
        assert!(
            ledger.book(51).is_err(),
            "the 50 beyond its promise are booked"
        );
        assert!(ledger.book(50).is_ok());
        drop(booking);
        available.store(10, Ordering::SeqCst);
        let refused = ledger.book_beside(11, Some(promise.number()));
        assert!(refused.is_err(), "what is not there cannot be written");
    }

    #[test]
    fn volumes_are_promised_like_disks() {
        let (ledger, _) = ledger(1000, 0);
        ledger.set_volumes(VolumeAccount {
            promised_mib: 900,
            used_mib: 100,
        });
        assert!(ledger.book(201).is_err());
        assert!(ledger.promise(disk_of(200)).is_ok());
    }

    impl Ledger {
        /// What is committed, added up over every promise.
        fn added_up(&self) -> Committed {
            let accounts = self.lock();
            let mut sum = Committed {
                disk_mib: accounts.volumes.promised_mib,
                disk_used_mib: accounts.volumes.used_mib,
                disk_booked_mib: accounts.booked_mib,
                ..Committed::default()
            };
            for account in accounts.promises.values() {
                sum.add(account.part());
            }
            sum
        }
    }

    proptest! {
        #[test]
        fn what_is_committed_is_the_sum_of_all_promises(
            steps in proptest::collection::vec((0..6_u8, 0..20_usize, 0..900_u64), 1..120)
        ) {
            let (ledger, _) = ledger(1 << 30, 0);
            let mut promises = Vec::new();
            let mut bookings = Vec::new();
            for (kind, place, mib) in steps {
                let place = place % (promises.len().max(1));
                match kind {
                    0 => promises.push(ledger.promise(disk_of(mib)).unwrap()),
                    1 => promises.push(ledger.note(SandboxClass::Reserved, disk_of(mib))),
                    2 if !promises.is_empty() => drop(promises.swap_remove(place)),
                    // As if somebody had looked.
                    3 if !promises.is_empty() => {
                        let number = promises[place].number;
                        ledger.lock().change(number, |account| account.used_mib = mib);
                    }
                    4 => {
                        let mut booking = ledger.book(mib).unwrap();
                        booking.seals(promises.get(place));
                        bookings.push(booking);
                    }
                    _ => drop(bookings.pop()),
                }
                prop_assert_eq!(ledger.view().1, ledger.added_up());
            }
            drop((promises, bookings));
            prop_assert_eq!(ledger.view().1, Committed::default());
        }
    }

    #[test]
    fn a_shared_promise_counts_with_what_was_touched_where_that_is_more() {
        let (ledger, _) = ledger(1000, 0);
        let ledger = Arc::into_inner(ledger).unwrap();
        let sharing = Sharing { memory: 8, disk: 8 };
        let ledger = Arc::new(ledger.shared(sharing));
        let demand = ledger.demand(SandboxClass::Shared, 512, 80);
        let shared = ledger.promise_to(SandboxClass::Shared, demand).unwrap();
        let reserved = ledger.promise(disk_of(1)).unwrap();
        let memory = |ledger: &Ledger| {
            let (_, committed) = ledger.view();
            (committed.memory_mib, committed.memory_owed_mib)
        };
        assert_eq!(memory(&ledger), (97, 97));
        ledger.note_memory(&[(shared.number(), 40), (reserved.number(), 1)]);
        assert_eq!(memory(&ledger), (97, 56));
        ledger.note_memory(&[(shared.number(), 600), (reserved.number(), 30)]);
        assert_eq!(memory(&ledger), (601, 0));
        drop(shared);
        assert_eq!(memory(&ledger), (1, 0));
    }
}
