//! Whether the database can be written: found out when somebody asks, and not too often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::conditions::Condition;
use crate::control::Control;
use crate::store::Unavailable;
use crate::time::now_ms;

/// Whoever asks again within this long is told the same.
const KEPT: Duration = Duration::from_secs(1);
/// A write that takes longer is none.
const DEADLINE: Duration = Duration::from_secs(2);

/// What is remembered of the last look.
#[derive(Debug, Default)]
pub(crate) struct StoreCheck {
    /// When it ended, and what it wrote. Held while one is under way.
    last: Arc<Mutex<Option<(Instant, i64)>>>,
}

/// Makes sure that [`Condition::StoreUnwritable`] says how it is now, or was a second ago. At most
/// one write is under way, however many ask, and it is never given up half-way.
pub(crate) async fn look(control: &Arc<Control>) {
    let looked = async {
        let mut last = Arc::clone(&control.store_check.last).lock_owned().await;
        if last.is_some_and(|(at, _)| at.elapsed() < KEPT) {
            return;
        }
        let checking = Arc::clone(control);
        let check = control.tasks.spawn(async move {
            let mark = last.map_or(0, |(_, mark)| mark + 1).max(now_ms());
            check(&checking, mark).await;
            *last = Some((Instant::now(), mark));
        });
        // It ends by itself, whoever waits for it.
        let _ = check.await;
    };
    if tokio::time::timeout(DEADLINE, looked).await.is_err() {
        let detail = format!(
            "the database was not written within {} s",
            DEADLINE.as_secs()
        );
        control.conditions.set(Condition::StoreUnwritable, detail);
    }
}

async fn check(control: &Control, mark: i64) {
    let Err(error) = control.store.check_writing(mark).await else {
        control.conditions.clear(Condition::StoreUnwritable);
        return;
    };
    let why = Unavailable::find(&error).map_or("the log says why", Unavailable::why);
    tracing::warn!(
        error = &error as &dyn std::error::Error,
        "the database cannot be written"
    );
    let detail = format!("the database cannot be written: {why}");
    control.conditions.set(Condition::StoreUnwritable, detail);
}
