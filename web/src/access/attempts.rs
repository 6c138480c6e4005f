//! The attempts to sign in. Those from one address are checked one after the other.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Weak},
};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// How many attempts from one address there are at once: one is checked, and the others
/// wait. More are refused, so that a visitor who shares the address waits for seconds only.
pub(super) const MOST: usize = 20;

/// A lock for each address with an attempt, which the attempt holds while it is checked.
/// All attempts of visitors whose address is not known share one.
#[derive(Debug, Default)]
pub(super) struct Attempts(std::sync::Mutex<HashMap<Option<IpAddr>, Weak<Mutex<()>>>>);

impl Attempts {
    /// Waits until no attempt from this address is checked. Returns the lock, or `None` if
    /// too many attempts wait.
    pub(super) async fn begin(
        &self,
        peer: Option<SocketAddr>,
    ) -> Option<OwnedMutexGuard<()>> {
        let lock = self.lock_of(peer.map(network))?;
        Some(lock.lock_owned().await)
    }

    fn lock_of(&self, network: Option<IpAddr>) -> Option<Arc<Mutex<()>>> {
        let mut known = self.0.lock().expect("no holder of the lock panics");
        known.retain(|_, lock| lock.strong_count() > 0);
        let lock = known.get(&network).and_then(Weak::upgrade).unwrap_or_default();
        known.insert(network, Arc::downgrade(&lock));
        // Each attempt owns the lock once, also while it waits for it.
        (Arc::strong_count(&lock) <= MOST).then_some(lock)
    }
}

/// The address of a visitor or, for IPv6, of the network of 64 bits: a host can have each
/// of the addresses in it.
fn network(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), 1)
    }

    /// A guesser with IPv6 has as many addresses as it likes.
    #[test]
    fn the_addresses_of_an_ipv6_network_count_as_one() {
        let of = |ip| network(peer(ip));

        assert_eq!(of("2001:db8::1"), of("2001:db8::2:0:0:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("::ffff:192.0.2.1"), of("::ffff:192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    /// A guesser with many addresses must not fill the memory.
    #[tokio::test]
    async fn an_address_without_an_attempt_is_forgotten() {
        let attempts = Attempts::default();
        for ip in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            drop(attempts.begin(Some(peer(ip))).await.unwrap());
        }

        let last = attempts.begin(None).await;

        assert!(last.is_some());
        assert_eq!(attempts.0.lock().unwrap().len(), 1);
    }
}
