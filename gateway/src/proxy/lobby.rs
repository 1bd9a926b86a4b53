//! Those who have not said yet who they are: so many in all, and so many from one address.
//! Whoever comes gets a place, and where there is none, the longest silent of whoever has most
//! gives his up: silence, which costs nothing, keeps nobody out who has something to say.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Lobby {
    places: usize,
    share: usize,
    guests: Mutex<Guests>,
}

#[derive(Debug, Default)]
struct Guests {
    next: u64,
    /// In the order in which they came.
    inside: BTreeMap<u64, Guest>,
}

/// One of them. Dropped, it is told to go.
#[derive(Debug)]
struct Guest {
    from: IpAddr,
    _place: oneshot::Sender<()>,
}

/// A place there, given back when dropped.
#[derive(Debug)]
pub(super) struct LobbyPlace {
    lobby: Arc<Lobby>,
    number: u64,
    taken: oneshot::Receiver<()>,
}

impl Lobby {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: places.max(1),
            share: (places / 4).max(1),
            guests: Mutex::default(),
        }
    }

    /// A place for a connection from there.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr) -> LobbyPlace {
        let from = neighbourhood(from);
        // Nothing is left half done where a thread panicked.
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = guests.in_the_way(from, self) {
            guests.inside.remove(&number);
        }
        let (place, taken) = oneshot::channel();
        let number = guests.next;
        guests.next = number.wrapping_add(1);
        let guest = Guest {
            from,
            _place: place,
        };
        guests.inside.insert(number, guest);
        LobbyPlace {
            lobby: Arc::clone(self),
            number,
            taken,
        }
    }
}

impl Guests {
    /// Who makes room for somebody from there, if there is none.
    fn in_the_way(&self, from: IpAddr, lobby: &Lobby) -> Option<u64> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for guest in self.inside.values() {
            let count = counts.entry(guest.from).or_default();
            *count = count.saturating_add(1);
        }
        let whose = if counts.get(&from).is_some_and(|count| *count >= lobby.share) {
            from
        } else if self.inside.len() >= lobby.places {
            *counts.iter().max_by_key(|(_, count)| **count)?.0
        } else {
            return None;
        };
        let mut longest = self.inside.iter();
        longest
            .find(|(_, guest)| guest.from == whose)
            .map(|(number, _)| *number)
    }
}

impl LobbyPlace {
    /// Waits until another needs it.
    pub(super) async fn taken(&mut self) {
        // Nothing is ever sent: the sender goes with the guest.
        let _gone = (&mut self.taken).await;
    }
}

impl Drop for LobbyPlace {
    fn drop(&mut self) {
        let guests = self.lobby.guests.lock();
        let mut guests = guests.unwrap_or_else(PoisonError::into_inner);
        guests.inside.remove(&self.number);
    }
}

/// What counts as one address: who has one of IPv6 has all of its network (RFC 4291 2.5.4), and
/// every program of the machine has all of its loopback.
fn neighbourhood(address: IpAddr) -> IpAddr {
    const HOST_BITS: u32 = 64;
    let address = address.to_canonical();
    if address.is_loopback() {
        return Ipv4Addr::LOCALHOST.into();
    }
    match address {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> HOST_BITS << HOST_BITS).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(place: &mut LobbyPlace) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_has_most_makes_room_and_the_longest_silent_first() {
        let lobby = Arc::new(Lobby::new(8));
        let from = |text: &str| lobby.enter(text.parse().unwrap());
        let (mut first, mut second) = (from("192.0.2.1"), from("::ffff:192.0.2.1"));
        let mut third = from("192.0.2.1");
        assert!(is_taken(&mut first) && !is_taken(&mut second) && !is_taken(&mut third));
        let mut others = [from("2001:db8::1"), from("2001:db8:0:0:ffff::")];
        let same_network = from("2001:db8::2");
        assert!(is_taken(&mut others[0]) && !is_taken(&mut others[1]));
        let mut own = [from("127.0.0.1"), from("127.0.0.9"), from("::1")];
        assert!(is_taken(&mut own[0]), "one machine");
        // Full by now: six, and two more.
        let (seventh, eighth) = (from("198.51.100.1"), from("198.51.100.2"));
        assert!(!is_taken(&mut second) && !is_taken(&mut third));
        let ninth = from("198.51.100.3");
        let mut held = [second, third];
        let gone = held
            .iter_mut()
            .filter_map(|one| is_taken(one).then_some(()));
        let gone = gone.count();
        let gone = gone
            + own
                .iter_mut()
                .skip(1)
                .filter_map(|one| is_taken(one).then_some(()))
                .count();
        let gone = gone + usize::from(is_taken(&mut others[1]));
        assert_eq!(gone, 1, "one of those who have two");
        drop((
            held,
            own,
            others,
            same_network,
            seventh,
            eighth,
            ninth,
            first,
        ));
        assert!(lobby.guests.lock().unwrap().inside.is_empty());
    }
}
