//! Recovery of all parts, one page at a time.
//!
//! A part that cannot be reached does not hold up the others, as in a claim. While the
//! others have jobs to recover, the result has their counts and says that there is more.
//! When they have none left, the call fails with the error of that part. So a caller that
//! goes on while there is more recovers all parts that are up, and learns of the outage.

use std::{num::NonZeroU32, sync::Mutex};

use futures_util::future::join_all;
use relq_core::{Error, ReliableQueue, error::Operation, outcome::Recovered};

use crate::{Partitioned, health::is_temporary, joined::PartErrors};

/// The result of a part that was not asked yet, and may have jobs to recover.
const NOT_ASKED: Recovered =
    Recovered { requeued: 0, buried: 0, promoted: 0, more: true, next_in: None };

/// Counts recovered jobs that no result of a recovery contains yet, because the call of another
/// part failed, or because a wait recovered them while it asked whether a part is up again. The
/// next result contains them, so that the observers of a worker learn of them. Jobs of a call that
/// was dropped before its answer are not counted.
#[derive(Debug, Default)]
pub(crate) struct Uncounted(Mutex<Recovered>);

impl Uncounted {
    pub(crate) fn add(&self, recovered: Recovered) {
        let counts = Recovered { more: false, next_in: None, ..recovered };
        let mut all = self.0.lock().expect("no holder of the lock panics");
        *all = sum(*all, counts);
    }

    fn take(&self) -> Recovered {
        std::mem::take(&mut *self.0.lock().expect("no holder of the lock panics"))
    }
}

/// The results of the parts so far.
struct ByPart {
    results: Vec<Recovered>,
    /// The errors of the parts that cannot be reached.
    errors: PartErrors,
}

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Recovers up to `page` jobs of all parts together. All parts get an equal share of
    /// the page at the same time. Parts that have more jobs get the rest of it in turn.
    /// A page that is smaller than the number of parts has no equal shares: part 0 gets one
    /// job of it, and all parts get the rest in turn.
    ///
    /// The result also counts the jobs of earlier calls that no result has counted.
    pub(crate) async fn recover_page(
        &self,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let mut by_part = ByPart::nothing(self.parts.len());
        let called = self.recover_parts(page, &mut by_part).await;
        let counts = by_part.sum();
        match called.and_then(|()| by_part.end()) {
            Ok(recovered) => Ok(sum(recovered, self.uncounted.take())),
            Err(error) => {
                self.uncounted.add(counts);
                Err(error)
            }
        }
    }

    async fn recover_parts(
        &self,
        page: NonZeroU32,
        by_part: &mut ByPart,
    ) -> Result<(), Error> {
        let parts = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        match NonZeroU32::new(page.get() / parts) {
            Some(share) => self.recover_at_once(share, by_part).await?,
            None => self.recover_first(by_part).await?,
        }
        for part in self.reaper_turn.order() {
            let left = NonZeroU32::new(page.get().saturating_sub(by_part.count()));
            let Some(left) = left.filter(|_| by_part.results[part].more) else {
                continue;
            };
            let recovered = self.recover_part(part, left).await;
            let added = by_part.add(part, recovered);
            added.map_err(|error| by_part.errors.ended_by(error))?;
        }
        Ok(())
    }

    /// Recovers part 0 and then all other parts at the same time. Part 0 is first because
    /// its recovery checks the marker of the whole queue: if the marker refuses this
    /// client, the other parts are not changed (R25). If part 0 cannot be reached, the
    /// others are recovered all the same (R9).
    async fn recover_at_once(
        &self,
        share: NonZeroU32,
        by_part: &mut ByPart,
    ) -> Result<(), Error> {
        let mut all = vec![self.recover_part(0, share).await];
        if all[0].as_ref().err().is_none_or(is_temporary) {
            let calls =
                (1..self.parts.len()).map(|part| self.recover_part(part, share));
            all.extend(join_all(calls).await);
        }
        let mut refused = None;
        for (part, recovered) in all.into_iter().enumerate() {
            if let Err(error) = by_part.add(part, recovered) {
                refused.get_or_insert(error);
            }
        }
        match refused {
            Some(error) => Err(by_part.errors.ended_by(error)),
            None => Ok(()),
        }
    }

    /// Recovers one job of part 0, because its marker must be checked before another part
    /// is changed (R25). It gets no more than that, so that the parts share the rest of the
    /// page in turn.
    async fn recover_first(&self, by_part: &mut ByPart) -> Result<(), Error> {
        let recovered = self.recover_part(0, NonZeroU32::MIN).await;
        let added = by_part.add(0, recovered);
        added.map_err(|error| by_part.errors.ended_by(error))
    }

    /// Recovers a page of one part, and notes whether the part can be reached. A part that
    /// is left out is not asked while another is up, because its node may be silent.
    async fn recover_part(
        &self,
        part: usize,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let left = self.health.left_out_for(part);
        self.check_not_left_out(Operation::Recover, part, left)?;
        let began = self.health.now();
        let recovered = self.parts[part].recover(page).await;
        self.notice_since(began, part, &recovered);
        recovered
    }
}

impl ByPart {
    fn nothing(parts: usize) -> Self {
        Self { results: vec![NOT_ASKED; parts], errors: PartErrors::default() }
    }

    /// The number of jobs that all parts have recovered.
    fn count(&self) -> u32 {
        self.results.iter().map(count).sum()
    }

    fn sum(&self) -> Recovered {
        self.results.iter().copied().fold(Recovered::default(), sum)
    }

    /// Adds the result of a call of a part. A part that cannot be reached is not asked
    /// again for this page.
    ///
    /// # Errors
    /// An error that does not end by itself. It also ends the call for all parts.
    fn add(
        &mut self,
        part: usize,
        recovered: Result<Recovered, Error>,
    ) -> Result<(), Error> {
        let error = match recovered {
            Ok(page) => {
                if count(&page) > 0 {
                    self.errors.note_change();
                }
                let all = sum(self.results[part], page);
                let (more, next_in) = (page.more, page.next_in);
                self.results[part] = Recovered { more, next_in, ..all };
                return Ok(());
            }
            Err(error) => error,
        };
        if !is_temporary(&error) {
            self.errors.note(&error);
            return Err(error);
        }
        self.results[part].more = false;
        self.errors.add(error);
        Ok(())
    }

    /// The result of the whole page.
    fn end(self) -> Result<Recovered, Error> {
        let all = self.sum();
        match self.errors.end() {
            None => Ok(all),
            Some(_) if all.more || count(&all) > 0 => {
                Ok(Recovered { more: true, ..all })
            }
            Some(error) => Err(error),
        }
    }
}

fn count(recovered: &Recovered) -> u32 {
    recovered.requeued + recovered.buried + recovered.promoted
}

fn sum(all: Recovered, part: Recovered) -> Recovered {
    Recovered {
        requeued: all.requeued.saturating_add(part.requeued),
        buried: all.buried.saturating_add(part.buried),
        promoted: all.promoted.saturating_add(part.promoted),
        more: all.more || part.more,
        next_in: all.next_in.into_iter().chain(part.next_in).min(),
    }
}
