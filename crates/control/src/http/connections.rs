//! Who may hold a connection: so many of one address, and some places for those whose key was seen.
//!
//! A connection costs a stranger nothing, so those that do nothing must not shut out others: when
//! the places are taken, the one that has been idle for longest makes room, strangers' first.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_types::limits::{
    CONNECTIONS_MAX, CONNECTIONS_RESERVED, FIRST_HEAD_DEADLINE, KNOWN_PEERS_MAX,
    LOOPBACK_CONNECTIONS_MAX, PEER_CONNECTIONS_MAX,
};
use tokio_util::sync::CancellationToken;

/// How long an address is known after it has shown a key.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
/// How often the log says that connections were turned away.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub all: usize,
    /// Of all: for addresses that have shown a key lately.
    pub reserved: usize,
    pub of_one_peer: usize,
    /// Of one loopback address, behind which a proxy may stand for everybody.
    pub of_one_loopback: usize,
    /// How long the head of the first request may take.
    pub first_head: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: CONNECTIONS_MAX,
            reserved: CONNECTIONS_RESERVED,
            of_one_peer: PEER_CONNECTIONS_MAX,
            of_one_loopback: LOOPBACK_CONNECTIONS_MAX,
            first_head: FIRST_HEAD_DEADLINE,
        }
    }
}

/// An address as far as it is somebody's own: of IPv6 the first half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PeerGroup {
    bits: u128,
    is_loopback: bool,
}

impl PeerGroup {
    fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let bits = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits() >> 64 << 64,
        };
        Self {
            bits,
            is_loopback: address.is_loopback(),
        }
    }
}

/// The connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, Open>,
    peers: HashMap<PeerGroup, Peer>,
    /// Strangers' before those of known peers, and those that became so first before others.
    idle: BTreeMap<(bool, u64), u64>,
    known: HashMap<PeerGroup, Instant>,
    next: u64,
    turned_away: TurnedAway,
}

#[derive(Debug)]
struct Open {
    peer: PeerGroup,
    /// Requests under way.
    active: usize,
    idle: Option<(bool, u64)>,
    close: CancellationToken,
}

#[derive(Debug, Default)]
struct Peer {
    count: usize,
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TurnedAway {
    closed: u64,
    refused: u64,
    reported: Option<Instant>,
}

/// A connection that was let in, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    connections: Arc<Connections>,
    id: u64,
    close: CancellationToken,
    begun: CancellationToken,
}

/// A request of a connection, until its answer was sent.
#[derive(Debug)]
pub(crate) struct Busy {
    connections: Arc<Connections>,
    id: u64,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics; a number that is off by one would be no danger either.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn first_head(&self) -> Duration {
        self.limits.first_head
    }

    /// Notes that somebody at an address has shown a key that may be used.
    pub(crate) fn has_shown_a_key(&self, address: IpAddr) {
        let (now, peer) = (Instant::now(), PeerGroup::of(address));
        let mut state = self.state();
        let is_new = !state.known.contains_key(&peer);
        if is_new && state.known.len() >= KNOWN_PEERS_MAX {
            state
                .known
                .retain(|_, at| now.duration_since(*at) < KNOWN_FOR);
        }
        if !is_new || state.known.len() < KNOWN_PEERS_MAX {
            state.known.insert(peer, now);
        }
    }

    /// Lets a connection in, if need be by closing an idle one; `None` when it must be turned away.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let peer = PeerGroup::of(address);
        let mut state = self.state();
        let of_peer = if peer.is_loopback {
            self.limits.of_one_loopback
        } else {
            self.limits.of_one_peer
        };
        let of_all = if state.is_known(peer) {
            self.limits.all
        } else {
            self.limits.all.saturating_sub(self.limits.reserved)
        };
        let count = state.peers.get(&peer).map_or(0, |peer| peer.count);
        let has_room = (count < of_peer || state.close_idle_of(peer))
            && (state.open.len() < of_all || state.close_idle());
        if !has_room {
            state.turned_away.refused += 1;
        }
        state.report();
        if !has_room {
            return None;
        }
        let id = state.number();
        let close = CancellationToken::new();
        let open = Open {
            peer,
            active: 0,
            idle: None,
            close: close.clone(),
        };
        state.open.insert(id, open);
        state.peers.entry(peer).or_default().count += 1;
        state.rest(id);
        Some(Seat {
            connections: Arc::clone(self),
            id,
            close,
            begun: CancellationToken::new(),
        })
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn is_known(&self, peer: PeerGroup) -> bool {
        let shown = self.known.get(&peer);
        shown.is_some_and(|at| at.elapsed() < KNOWN_FOR)
    }

    /// Puts a connection among those that do nothing.
    fn rest(&mut self, id: u64) {
        let number = self.number();
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let peer = open.peer;
        let shown = self.known.get(&peer);
        let is_known = shown.is_some_and(|at| at.elapsed() < KNOWN_FOR);
        open.idle = Some((is_known, number));
        self.idle.insert((is_known, number), id);
        self.peers.entry(peer).or_default().idle.insert(number, id);
    }

    /// Takes a connection from among those that do nothing.
    fn wake(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        if let Some(place) = open.idle.take() {
            self.idle.remove(&place);
            if let Some(peer) = self.peers.get_mut(&open.peer) {
                peer.idle.remove(&place.1);
            }
        }
    }

    fn forget(&mut self, id: u64) {
        self.wake(id);
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(&open.peer) {
            peer.count -= 1;
            if peer.count == 0 {
                self.peers.remove(&open.peer);
            }
        }
    }

    fn close_idle(&mut self) -> bool {
        let first = self.idle.first_key_value().map(|(_, id)| *id);
        self.close(first)
    }

    fn close_idle_of(&mut self, peer: PeerGroup) -> bool {
        let peer = self.peers.get(&peer);
        let first = peer.and_then(|peer| peer.idle.first_key_value());
        let first = first.map(|(_, id)| *id);
        self.close(first)
    }

    fn close(&mut self, id: Option<u64>) -> bool {
        let Some(open) = id.and_then(|id| self.open.get(&id)) else {
            return false;
        };
        open.close.cancel();
        id.into_iter().for_each(|id| self.forget(id));
        self.turned_away.closed += 1;
        true
    }

    /// Says once in a while that somebody was turned away.
    fn report(&mut self) {
        let now = Instant::now();
        let TurnedAway {
            closed,
            refused,
            reported,
        } = self.turned_away;
        let is_due = reported.is_none_or(|at| now.duration_since(at) >= REPORT_INTERVAL);
        if closed + refused == 0 || !is_due {
            return;
        }
        self.turned_away = TurnedAway {
            closed: 0,
            refused: 0,
            reported: Some(now),
        };
        let (open, peers) = (self.open.len(), self.peers.len());
        tracing::warn!(
            open,
            peers,
            idle_closed = closed,
            refused,
            "connections are at their limit: idle ones were closed, or new ones refused"
        );
    }
}

impl Seat {
    /// Waits until the connection must make room.
    pub(crate) async fn must_close(&self) {
        self.close.cancelled().await;
    }

    /// Waits until the first request has begun.
    pub(crate) async fn has_begun(&self) {
        self.begun.cancelled().await;
    }

    pub(crate) fn begin(&self) -> Busy {
        self.begun.cancel();
        let mut state = self.connections.state();
        state.wake(self.id);
        if let Some(open) = state.open.get_mut(&self.id) {
            open.active += 1;
        }
        Busy {
            connections: Arc::clone(&self.connections),
            id: self.id,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.connections.state();
        let Some(open) = state.open.get_mut(&self.id) else {
            return;
        };
        open.active -= 1;
        if open.active == 0 {
            state.rest(self.id);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.state().forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn connections(all: usize, reserved: usize, of_one_peer: usize) -> Arc<Connections> {
        Arc::new(Connections::new(ConnectionLimits {
            all,
            reserved,
            of_one_peer,
            ..ConnectionLimits::default()
        }))
    }

    fn seats(connections: &Arc<Connections>, address: IpAddr, count: usize) -> Vec<Seat> {
        (0..count)
            .filter_map(|_| connections.admit(address))
            .collect()
    }

    fn open(seats: &[Seat]) -> usize {
        seats
            .iter()
            .filter(|seat| !seat.close.is_cancelled())
            .count()
    }

    #[test]
    fn one_address_closes_its_own_idle_connections_first() {
        let connections = connections(8, 0, 4);
        let others = seats(&connections, OTHER, 2);
        let mine = seats(&connections, ONE, 10);
        assert_eq!((open(&mine), open(&others)), (4, 2));
        assert!(
            !mine.last().unwrap().close.is_cancelled(),
            "the oldest went"
        );
    }

    #[test]
    fn a_connection_with_a_request_is_not_closed_for_another() {
        let connections = connections(8, 0, 2);
        let mine = seats(&connections, ONE, 2);
        let requests: Vec<Busy> = mine.iter().map(Seat::begin).collect();
        assert!(connections.admit(ONE).is_none(), "all are in use");
        assert!(connections.admit(OTHER).is_some());
        drop(requests);
        assert!(connections.admit(ONE).is_some());
        assert_eq!(open(&mine), 1);
    }

    #[test]
    fn places_are_kept_for_those_who_have_shown_a_key() {
        let connections = connections(4, 2, 4);
        let strangers = seats(&connections, ONE, 2);
        let requests: Vec<Busy> = strangers.iter().map(Seat::begin).collect();
        assert!(connections.admit(OTHER).is_none());
        connections.has_shown_a_key(OTHER);
        let known = seats(&connections, OTHER, 2);
        assert_eq!(known.len(), 2);
        drop(requests);
        let new = connections.admit(OTHER).unwrap();
        assert_eq!((open(&strangers), open(&known)), (1, 2), "strangers' first");
        drop((new, strangers, known));
        let state = connections.state();
        assert!(state.open.is_empty() && state.peers.is_empty() && state.idle.is_empty());
    }

    #[test]
    fn half_of_an_address_is_enough_to_tell_networks_apart() {
        let group = |text: &str| PeerGroup::of(text.parse().unwrap());
        assert_eq!(group("2001:db8::1"), group("2001:db8::2"));
        assert_ne!(group("2001:db8::1"), group("2001:db8:0:1::1"));
        assert_eq!(group("::ffff:192.0.2.1"), group("192.0.2.1"));
        assert!(group("::1").is_loopback && group("127.0.0.2").is_loopback);
        assert_ne!(group("127.0.0.1"), group("127.0.0.2"));
    }
}
