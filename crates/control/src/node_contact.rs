//! Since when the node answers, or does not: a monitor must tell a restart from a loop of them.
//!
//! ```text
//! never --> answers --> silent --> answers again; broken off soon, the silence goes on from its
//!                                  first moment
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known of one node.
#[derive(Debug, Default)]
pub(crate) struct NodeContact {
    contact: Mutex<Contact>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Contact {
    /// Not once since this process began.
    #[default]
    Never,
    Answers {
        since: Instant,
        /// What came before it, if anything did.
        after: Option<Silence>,
    },
    Silent(Silence),
}

#[derive(Debug, Clone, Copy)]
struct Silence {
    began: Instant,
    /// Answers came in between, and none of them lasted.
    is_broken: bool,
}

/// How long a node may be silent, and how long it must answer to count as back when it was back
/// before and did not stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience(pub(crate) Duration);

impl NodeContact {
    fn contact(&self) -> MutexGuard<'_, Contact> {
        // Replaced whole.
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node answers from now on.
    pub(crate) fn found(&self, now: Instant) {
        let mut contact = self.contact();
        *contact = match *contact {
            Contact::Never => Contact::Answers {
                since: now,
                after: None,
            },
            Contact::Silent(silence) => Contact::Answers {
                since: now,
                after: Some(silence),
            },
            Contact::Answers { .. } => return,
        };
    }

    /// The node does not answer any more. May be repeated.
    pub(crate) fn lost(&self, now: Instant, patience: Patience) {
        let mut contact = self.contact();
        let Contact::Answers { since, after } = *contact else {
            return;
        };
        let is_short = now - since < patience.0;
        let began = match after {
            Some(silence) if is_short => silence.began,
            None if is_short => since,
            Some(_) | None => now,
        };
        *contact = Contact::Silent(Silence {
            began,
            is_broken: began != now,
        });
    }

    /// Why the node cannot be counted on, when it cannot.
    pub(crate) fn outage(&self, now: Instant, patience: Patience) -> Option<String> {
        let limit = patience.0;
        match *self.contact() {
            Contact::Never => {
                Some("the node process has not answered since this process started".to_owned())
            }
            Contact::Silent(silence) => {
                let silent = now - silence.began;
                (silent >= limit).then(|| told(silent, silence.is_broken))
            }
            Contact::Answers {
                since,
                after: Some(silence),
            } if silence.is_broken && now - since < limit => {
                let silent = now - silence.began;
                (silent >= limit).then(|| told(silent, true))
            }
            Contact::Answers { .. } => None,
        }
    }
}

fn told(silent: Duration, is_broken: bool) -> String {
    let seconds = silent.as_secs();
    if is_broken {
        format!(
            "the node process has not stayed alive for {seconds} s; sandboxes go on, and nobody \
             reaches them"
        )
    } else {
        format!(
            "the node process has not answered for {seconds} s; sandboxes go on, and nobody \
             reaches them"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience(Duration::from_secs(30));

    /// A node, and the moments of its test.
    struct Story {
        contact: NodeContact,
        began: Instant,
    }

    impl Story {
        fn begin() -> Self {
            Self {
                contact: NodeContact::default(),
                began: Instant::now(),
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.began + Duration::from_secs(seconds)
        }

        fn found(&self, seconds: u64) {
            self.contact.found(self.at(seconds));
        }

        fn lost(&self, seconds: u64) {
            self.contact.lost(self.at(seconds), PATIENCE);
        }

        fn is_down(&self, seconds: u64) -> bool {
            self.contact.outage(self.at(seconds), PATIENCE).is_some()
        }
    }

    #[test]
    fn a_node_that_never_answered_is_down_until_it_does() {
        let story = Story::begin();
        story.lost(0);
        assert!(story.is_down(0) && story.is_down(100));
        story.found(100);
        assert!(!story.is_down(100));
    }

    #[test]
    fn a_short_restart_is_no_outage_and_a_long_silence_is() {
        let story = Story::begin();
        story.found(0);
        story.lost(1000);
        assert!(!story.is_down(1029));
        assert!(story.is_down(1030));
        story.lost(1040);
        assert!(story.is_down(1040), "told again it begins anew");
        story.found(1050);
        assert!(!story.is_down(1050), "it is back");
    }

    #[test]
    fn a_node_that_comes_and_goes_is_down() {
        let story = Story::begin();
        story.found(0);
        story.lost(1000);
        for round in 0..10 {
            story.found(1003 + round * 4);
            story.lost(1005 + round * 4);
        }
        assert!(!story.is_down(1029));
        assert!(story.is_down(1041));
        story.found(1042);
        assert!(story.is_down(1042), "it has come before and not stayed");
        assert!(!story.is_down(1072), "it has stayed");
        story.lost(1080);
        assert!(!story.is_down(1081), "that was another time");
    }

    #[test]
    fn one_that_does_not_stay_from_the_start_is_down() {
        let story = Story::begin();
        for round in 0..10 {
            story.found(round * 4);
            story.lost(round * 4 + 2);
        }
        assert!(story.is_down(39));
    }
}
