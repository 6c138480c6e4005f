//! Claims jobs: leases those that the pick script drew, and converts them into
//! deliveries.

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, environment::Timestamp, error::Operation,
};
use relq_redis::{
    PartialEffect,
    bookkeeping::{self, ClaimRound, Failure, Undeliverable, WaitHint},
    entry::Entry,
    pattern::WakeConditions,
};

use crate::{
    Keyspace,
    keys::id_of_item,
    lease::{self, Claim},
    pick::{Sweep, with_spare},
    scripts::{Ask, Picked, Taken, Wanted},
};

/// The number of database pages that a claim scans after its first job, to find more
/// jobs for the same call. The scan takes about ten milliseconds.
const FURTHER_PAGES: usize = 50;

/// The maximum number of retries of a claim whose jobs were all taken by other workers
/// first.
const CONTENDED: usize = 100;

/// The state of one claim that searches for jobs: its limits, and the jobs leased so
/// far.
#[derive(Debug)]
struct Hunt<'a> {
    ask: &'a ClaimRequest,
    /// How many jobs the claim returns at most.
    most: u32,
    /// When the claim began, by the server's clock (us).
    since_us: String,
    /// The number of unclaimed keys that are known to be foreign keys, and so not ready
    /// jobs. A key is unclaimed if it is not leased and not one of the queue's own.
    foreign_keys: u64,
    /// How many keys were ready jobs or foreign keys at the last count.
    unclaimed: u64,
    taken: Taken,
    /// Whether the claim saw a ready job, even if another worker took it first.
    saw_some: bool,
    deliveries: Vec<Delivery>,
    partial: PartialEffect,
}

/// A leased job that goes to the dead letters, with the reason.
struct Burial {
    lease: String,
    why: char,
    error: String,
}

impl Burial {
    fn failure(&self) -> Failure<'_> {
        let lease = self.lease.clone().into();
        Failure { lease, after: None, why: self.why, error: &self.error }
    }
}

impl<'a> Hunt<'a> {
    fn new(
        ask: &'a ClaimRequest,
        most: u32,
        picked: &Picked,
        partial: PartialEffect,
    ) -> Self {
        Self {
            ask,
            most,
            since_us: picked.now_us.clone(),
            foreign_keys: 0,
            unclaimed: picked.unclaimed,
            taken: Taken::default(),
            saw_some: false,
            deliveries: Vec::new(),
            partial,
        }
    }

    fn is_over(&self) -> bool {
        self.taken.is_full
            || self.taken.jobs >= self.most
            || self.unclaimed <= self.foreign_keys
    }

    /// Whether another search would not find a job either. A retry is worth it if other
    /// workers took every job that this claim saw: more jobs may be ready.
    fn is_in_vain(&self) -> bool {
        self.taken.jobs == 0 && (!self.saw_some || self.unclaimed <= self.foreign_keys)
    }
}

/// Counts how often other workers took all the jobs that a claim saw. The claim keeps
/// this count between its rounds.
#[derive(Debug, Default)]
pub struct Contended(usize);

impl Keyspace {
    /// Picks jobs, and leases those that no other worker has taken in between.
    pub(crate) async fn pick_and_lease(
        &self,
        ask: &ClaimRequest,
        contended: &mut Contended,
        partial: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error> {
        let most = ask.max.get();
        let picked = self.store.pick(self.finder.wanted(most)).await;
        let picked = picked.map_err(|error| partial.whole(error))?;
        let hint = WaitHint { is_paused: picked.is_paused, due_in: picked.due_in };
        let wake = WakeConditions::from(hint);
        if picked.is_paused {
            let deliveries = Vec::new();
            return Ok(ClaimRound {
                deliveries,
                hint: wake,
                is_due: false,
                goes_on: false,
            });
        }
        let hunt = self.hunt(Hunt::new(ask, most, &picked, *partial), picked).await?;
        *partial = hunt.partial;
        let is_due = hint.is_due();
        let goes_on = !hunt.is_in_vain() && contended.0 < CONTENDED;
        contended.0 += usize::from(hunt.taken.jobs == 0);
        Ok(ClaimRound { deliveries: hunt.deliveries, hint: wake, is_due, goes_on })
    }

    /// Leases the picked jobs. If they are fewer than the claim wants, searches the
    /// database for more.
    async fn hunt<'a>(
        &self,
        mut hunt: Hunt<'a>,
        picked: Picked,
    ) -> Result<Hunt<'a>, Error> {
        self.finder.know(picked.unclaimed);
        hunt.foreign_keys = self.finder.foreign_keys();
        match self.look_for_all(&mut hunt, picked.items).await {
            Ok(()) => Ok(hunt),
            // Some jobs are leased: deliver them instead of failing the call.
            Err(error) if !hunt.deliveries.is_empty() => {
                tracing::debug!(%error, "a claim returns fewer jobs: a later step failed");
                Ok(hunt)
            }
            Err(error) => Err(hunt.partial.whole(error)),
        }
    }

    async fn look_for_all(
        &self,
        hunt: &mut Hunt<'_>,
        picked: Vec<Bytes>,
    ) -> Result<(), Error> {
        let has_foreign_keys_only = hunt.is_over();
        self.take(hunt, picked).await?;
        let mut sweep = self.finder.sweep();
        if has_foreign_keys_only && hunt.foreign_keys > 0 {
            let page = self.finder.next_page(&self.store, &mut sweep).await?;
            return self
                .take(hunt, page.map_or_else(Vec::new, |page| page.items))
                .await;
        }
        let mut further = 0;
        while !hunt.is_over() && further < FURTHER_PAGES {
            let Some(page) = self.finder.next_page(&self.store, &mut sweep).await?
            else {
                if !hunt.saw_some {
                    self.count_foreign_keys(hunt).await?;
                }
                return Ok(());
            };
            self.take(hunt, self.finder.rotated(&self.store, page.items)).await?;
            further += usize::from(hunt.taken.jobs > 0);
        }
        Ok(())
    }

    /// Counts the foreign keys after a search that saw no ready job although keys are
    /// unclaimed. These keys are foreign, unless other workers took jobs in between.
    async fn count_foreign_keys(&self, hunt: &mut Hunt<'_>) -> Result<(), Error> {
        let now = self.store.pick(Wanted { draws: 0, ..self.finder.wanted(1) }).await?;
        hunt.unclaimed = now.unclaimed;
        let mut sweep = Sweep::of_all();
        while !hunt.is_over() {
            let Some(page) = sweep.next_page(&self.store, Operation::Claim).await?
            else {
                self.finder.learn(&sweep, hunt.unclaimed);
                return Ok(());
            };
            self.take(hunt, page.items).await?;
        }
        Ok(())
    }

    /// Leases the jobs of `items` that are still ready, up to the number wanted.
    async fn take(&self, hunt: &mut Hunt<'_>, items: Vec<Bytes>) -> Result<(), Error> {
        let room = hunt.most - hunt.taken.jobs;
        if items.is_empty() || room == 0 {
            return Ok(());
        }
        hunt.saw_some = true;
        let nonce = self.store.conn.environment().random().text(12);
        let claim =
            Claim { worker: &hunt.ask.worker, since_us: &hunt.since_us, nonce: &nonce };
        let most = usize::try_from(with_spare(room)).unwrap_or(usize::MAX);
        let picked = items.into_iter().take(most).enumerate();
        let asked: Vec<_> = picked.map(|(at, item)| claim.ask(at, item)).collect();
        let wanted = Wanted { jobs: room, draws: 0, foreign_keys: hunt.foreign_keys };
        let claimed =
            self.store.claim(&asked, wanted, hunt.taken, hunt.ask.lease).await;
        let claimed = claimed.map_err(|error| hunt.partial.whole(error))?;
        if claimed.entries.iter().any(Option::is_some) {
            hunt.partial = PartialEffect::Begun;
        }
        hunt.unclaimed = claimed.unclaimed;
        hunt.taken.is_full = claimed.is_full;
        let mut burials = Vec::new();
        for (at, (ask, entry)) in asked.iter().zip(claimed.entries).enumerate() {
            let Some(entry) = entry else { continue };
            hunt.taken.jobs += 1;
            hunt.taken.bytes += entry.len();
            match read(ask, &entry, claimed.now) {
                Ok(entry) => {
                    let token = lease::receipt_token(&claim.token(at), &entry);
                    hunt.deliveries.push(bookkeeping::delivery(
                        entry,
                        token.into(),
                        hunt.ask.lease,
                    ));
                }
                Err(burial) => burials.push(burial),
            }
        }
        self.bury(&burials).await
    }

    /// Buries jobs that have expired or cannot be read. They are leased by now, so none
    /// is lost on its way to the dead letters (R3, R17).
    async fn bury(&self, burials: &[Burial]) -> Result<(), Error> {
        if burials.is_empty() {
            return Ok(());
        }
        let mut steps = self.store.bookkeeping.steps();
        while let Some(page) = steps.next_page(burials, |burial| burial.lease.len()) {
            let failures: Vec<_> = page.iter().map(Burial::failure).collect();
            let leases = page.iter().map(|burial| burial.lease.clone());
            let bookkeeping = self.store.bookkeeping.with_keys(leases);
            let step = bookkeeping.fail(Operation::Claim, &failures).await;
            steps.add(page.len(), step)?;
        }
        Ok(())
    }
}

impl Claim<'_> {
    /// Returns the keys with which the script leases the job at `position`. A job whose
    /// key holds no valid id gets a generated id, under which it is then buried.
    fn ask(&self, position: usize, item: Bytes) -> Ask {
        let id = id_in(&item);
        let id = id.map_or_else(
            || format!("{}-bare-{position}", self.nonce),
            |id| id.as_str().to_owned(),
        );
        let processing = lease::key(&id, &self.token(position)).into();
        Ask { item, id, processing }
    }
}

/// The id in the key of a ready job; `None` if it is not a valid id.
pub(crate) fn id_in(item: &Bytes) -> Option<JobId> {
    JobId::new(std::str::from_utf8(&id_of_item(item)).ok()?).ok()
}

/// Why a claim buries the job of a key: the key holds no valid id, or another one than the
/// entry. `None` for any other job.
pub(crate) fn wrong_id(item: &Bytes, in_entry: Option<&JobId>) -> Option<String> {
    match (id_in(item), in_entry) {
        (None, _) => Some(invalid_id(item)),
        // `claim.lua` treats such an entry as a bare payload, and a bare payload must not
        // begin with relq's mark.
        (Some(id), Some(other)) if id != *other => Some("unreadable".to_owned()),
        _ => None,
    }
}

fn invalid_id(item: &Bytes) -> String {
    format!("{} holds no valid job id", item.escape_ascii())
}

/// Parses a leased entry. Returns a burial if the job has expired or cannot be read.
fn read(ask: &Ask, element: &Bytes, now: Timestamp) -> Result<Entry, Burial> {
    let lease = || String::from_utf8_lossy(&ask.processing).into_owned();
    if id_in(&ask.item).is_none() {
        let error = invalid_id(&ask.item);
        return Err(Burial { lease: lease(), why: 'm', error });
    }
    bookkeeping::read(element, now).map_err(|Undeliverable { why, error }| Burial {
        lease: lease(),
        why,
        error: error.to_owned(),
    })
}
