//! Calls that a child serves: files, disks and free pages.

use dayfly_guest_proto::{ChannelId, GuestError, GuestErrorCode, Request};
use dayfly_types::limits::{AGENT_FILE_OPERATIONS_MAX, WATCHES_MAX};

use crate::account::Account;
use crate::agent::Agent;
use crate::files::{self, ChangedSince, Job, Operation, Worker};
use crate::free_memory::FreePagesWanted;
use crate::refusal::{guest_error, wrong_state};
use crate::volumes::DiskOperation;

impl Agent {
    /// Starts what a request about files asks for, as the user that it names. The child answers.
    pub(crate) fn start_file(&mut self, call: u64, request: Request) {
        let started = if let Request::ListChanges {
            channel,
            path,
            since_unix_nanos,
        } = request
        {
            self.changes(channel, &path, since_unix_nanos)
                .and_then(|operation| self.start_job(call, operation, Account::root()))
        } else {
            files::operation(request).and_then(|(operation, user)| {
                let account = Account::find(user.as_deref(), &self.machine.defaults)?;
                self.start_job(call, operation, account)
            })
        };
        if let Err(error) = started {
            self.answer(call, Err(error));
        }
    }

    /// Starts something about disks, as root. The child answers.
    pub(crate) fn start_disk(&mut self, call: u64, operation: DiskOperation) {
        let operation = Operation::Disk(operation);
        if let Err(error) = self.start_job(call, operation, Account::root()) {
            self.answer(call, Err(error));
        }
    }

    /// Looks for free pages, as root. The child answers.
    pub(crate) fn start_free_pages(&mut self, call: u64, wanted: FreePagesWanted) {
        let operation = Operation::FreePages(wanted);
        if let Err(error) = self.start_job(call, operation, Account::root()) {
            self.answer(call, Err(error));
        }
    }

    fn changes(
        &self,
        channel: ChannelId,
        path: &str,
        since_unix_nanos: Option<u64>,
    ) -> Result<Operation, GuestError> {
        let since = since_unix_nanos.or_else(|| self.life.became_unix_nanos());
        let since = since.ok_or_else(|| wrong_state("this guest is no sandbox yet"))?;
        let wanted = ChangedSince {
            writable: self.machine.writable_disk()?,
            base: self.machine.base_disk()?,
            path: files::path(path),
            since_unix_nanos: since,
        };
        Ok(Operation::Changes { channel, wanted })
    }

    fn start_job(
        &mut self,
        call: u64,
        operation: Operation,
        account: Account,
    ) -> Result<(), GuestError> {
        let too_many = |text: &str| Err(GuestError::new(GuestErrorCode::TooMany, text));
        if self.workers.len() >= AGENT_FILE_OPERATIONS_MAX {
            return too_many("too many file operations at once");
        }
        let watches = self.workers.iter().filter(|worker| worker.is_watch());
        if operation.is_watch() && watches.count() >= WATCHES_MAX {
            return too_many("too many watches at once");
        }
        operation.check_paths()?;
        if operation
            .channel()
            .is_some_and(|channel| self.is_open(channel))
        {
            return Err(GuestError::new(
                GuestErrorCode::Exists,
                "the channel is in use",
            ));
        }
        let job = Job {
            call,
            account,
            operation,
        };
        let worker = Worker::start(job, &self.poller)
            .map_err(|error| guest_error("cannot start the file operation", &error))?;
        self.workers.push(worker);
        Ok(())
    }
}
