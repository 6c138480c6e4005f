//! Recovery of all parts, one page at a time.

use std::num::NonZeroU32;

use futures_util::future::join_all;
use relq_core::{Error, ReliableQueue, outcome::Recovered};

use crate::{Partitioned, health::is_temporary, joined};

/// The result of a part that was not asked yet, and may have jobs to recover.
const NOT_ASKED: Recovered =
    Recovered { requeued: 0, buried: 0, promoted: 0, more: true, next_in: None };

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Recovers up to `page` jobs of all parts together. All parts get an equal share of
    /// the page at the same time. Parts that have more jobs get the rest of it in turn.
    pub(crate) async fn recover_page(
        &self,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let parts = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let mut by_part = match NonZeroU32::new(page.get() / parts) {
            Some(share) => self.recover_at_once(share).await?,
            None => vec![NOT_ASKED; self.parts.len()],
        };
        for part in self.reaper_turn.order() {
            let done: u32 = by_part.iter().map(count).sum();
            let left = NonZeroU32::new(page.get().saturating_sub(done));
            let Some(left) = left.filter(|_| by_part[part].more) else { continue };
            let rest = self.recover_part(part, left).await;
            let rest = rest.map_err(|error| joined::whole(error, done > 0))?;
            let (more, next_in) = (rest.more, rest.next_in);
            by_part[part] = Recovered { more, next_in, ..add(by_part[part], rest) };
        }
        Ok(by_part.into_iter().fold(Recovered::default(), add))
    }

    /// Recovers part 0 and then all other parts at the same time. Part 0 is first because
    /// its recovery checks the marker of the whole queue: if the marker refuses this
    /// client, the other parts are not changed (R25). If part 0 cannot be reached, the
    /// others are recovered all the same (R9).
    async fn recover_at_once(
        &self,
        share: NonZeroU32,
    ) -> Result<Vec<Recovered>, Error> {
        let mut all = vec![self.recover_part(0, share).await];
        if all[0].as_ref().err().is_none_or(is_temporary) {
            let calls =
                (1..self.parts.len()).map(|part| self.recover_part(part, share));
            all.extend(join_all(calls).await);
        }
        joined::of_writes(all, |part| count(part) > 0)
    }

    /// Recovers a page of one part, and notes whether the part can be reached.
    async fn recover_part(
        &self,
        part: usize,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let recovered = self.parts[part].recover(page).await;
        self.notice(part, &recovered);
        recovered
    }
}

fn count(recovered: &Recovered) -> u32 {
    recovered.requeued + recovered.buried + recovered.promoted
}

fn add(all: Recovered, part: Recovered) -> Recovered {
    Recovered {
        requeued: all.requeued + part.requeued,
        buried: all.buried + part.buried,
        promoted: all.promoted + part.promoted,
        more: all.more || part.more,
        next_in: all.next_in.into_iter().chain(part.next_in).min(),
    }
}
