//! The changes that the answers of the store make in the state.

use std::time::Instant;

use super::{
    asks::{Answer, Effect, Found, NamesOf, Sample},
    state::State,
};

impl State {
    /// Takes an answer. Returns what is to be asked next.
    pub(super) fn answer(&mut self, answer: Answer, now: Instant) -> Vec<Effect> {
        match answer {
            Answer::Sampled(sampled) => {
                self.sampled(sampled, now);
                Vec::new()
            }
            Answer::Read { number, found } => {
                self.page_was_read(number, found);
                Vec::new()
            }
            Answer::Changed(Ok(message)) => {
                self.say(message);
                // Read the page anew, although it is frozen, so that it shows the change.
                self.reading = None;
                self.refresh(NamesOf::LastList, now)
            }
            Answer::Changed(Err(message)) => {
                self.warn(message);
                Vec::new()
            }
        }
    }

    fn sampled(&mut self, sampled: Result<Sample, String>, now: Instant) {
        self.sampling = None;
        match sampled {
            Ok(sample) => {
                self.outage = None;
                self.overview.add(sample, now, self.interval);
            }
            Err(why) => {
                let since = self.outage.take().map_or(now, |(since, _)| since);
                self.outage = Some((since, why));
            }
        }
    }

    /// Takes the answer to the last reading. An answer to an earlier one is of a page that
    /// is not shown any more.
    fn page_was_read(&mut self, number: u64, found: Result<Found, String>) {
        let is_last = self.reading.as_ref().is_some_and(|read| read.number == number);
        if !is_last {
            return;
        }
        self.reading = None;
        let Some(open) = &mut self.queue else { return };
        match found {
            Ok(found) => open.add(found),
            Err(trouble) => open.trouble = Some(trouble),
        }
    }
}
