//! The rules for schedules (R28): how calls change the possible states of a schedule, and
//! what they may return.

use relq_core::{
    NewJob,
    outcome::Pushed,
    schedule::{Schedule, ScheduleStored, Schedules, Ticked},
};

use super::{
    draft,
    possible_state::{Ms, PossibleState},
    pushing::{PushCall, ms},
    reference::{CheckResult, Reference},
};

/// By how much a time of the store may differ from the model's, because both are cut to
/// milliseconds.
const ROUNDING: Ms = 1;

/// One state that a schedule may be in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PossibleSchedule {
    /// `None` if there is no schedule of this name.
    pub(crate) stored: Option<StoredSchedule>,
    /// The lost ticks that pushed their jobs, if the schedule is in this state.
    ticked: Vec<u32>,
}

/// A stored schedule, as far as the model knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredSchedule {
    /// The number of its definition.
    pub(crate) definition: u8,
    /// The earliest and the latest time that its last tick may be.
    pub(crate) last: (Ms, Ms),
}

/// A tick: the numbers of its schedule and its definition, and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TickOf {
    pub(crate) schedule: u8,
    pub(crate) definition: u8,
    pub(crate) at: Ms,
}

/// A call of `push_tick` without a reply. Its job is stored if and only if its tick is
/// recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostTick {
    /// The number of the call, which its job also has.
    pub(crate) call: u32,
    schedule: u8,
    /// Whether its command is delayed, and may run later.
    is_late: bool,
}

const ABSENT: PossibleSchedule = PossibleSchedule { stored: None, ticked: Vec::new() };

impl PossibleSchedule {
    fn put(&self, definition: u8, now: (Ms, Ms)) -> Self {
        let is_same = self.stored.is_some_and(|it| it.definition == definition);
        let later = |it: StoredSchedule| (now.0.max(it.last.0), now.1.max(it.last.1));
        let last = self.stored.map_or(now, later);
        let new = Some(StoredSchedule { definition, last });
        Self { stored: if is_same { self.stored } else { new }, ..self.clone() }
    }

    fn put_answer(&self, definition: u8) -> ScheduleStored {
        match self.stored {
            None => ScheduleStored::Created,
            Some(it) if it.definition == definition => ScheduleStored::Unchanged,
            Some(_) => ScheduleStored::Replaced,
        }
    }

    fn removed(&self) -> Self {
        Self { stored: None, ..self.clone() }
    }

    /// The state after the tick pushed its job. `None` if the tick pushes nothing.
    fn after(&self, tick: TickOf, now: Ms) -> Option<Self> {
        let stored = self.stored.filter(|it| it.definition == tick.definition)?;
        let is_due = tick.at <= now + ROUNDING && tick.at > stored.last.0;
        let stored = Some(StoredSchedule { last: (tick.at, tick.at), ..stored });
        is_due.then(|| Self { stored, ..self.clone() })
    }

    fn is_of(&self, tick: TickOf) -> bool {
        self.stored.is_some_and(|it| it.definition == tick.definition)
    }

    /// Whether the list of the schedules may have this entry for it. `last` is the
    /// earliest and latest time of the entry's last tick.
    fn is_listed_as(&self, entry: Option<&(&Schedule, (Ms, Ms))>) -> bool {
        match (self.stored, entry) {
            (None, None) => true,
            (Some(it), Some((schedule, last))) => {
                schedule.definition == draft::definition(it.definition)
                    && it.last.0 <= last.1 + ROUNDING
                    && last.0 <= it.last.1 + ROUNDING
            }
            _ => false,
        }
    }
}

impl Reference {
    fn possible_schedules(&mut self, number: u8) -> &mut Vec<PossibleSchedule> {
        self.schedules.entry(number).or_insert_with(|| vec![ABSENT])
    }

    fn keep_schedule(
        &mut self,
        number: u8,
        rule: &str,
        is_possible: impl Fn(&PossibleSchedule) -> bool,
    ) -> CheckResult {
        let possible = self.possible_schedules(number);
        let known = possible.clone();
        possible.retain(is_possible);
        if possible.is_empty() {
            return Err(format!("{rule}: schedule {number}, with {known:?}"));
        }
        Ok(())
    }

    /// Replaces each possible state of a schedule by those that `becomes` returns.
    fn change_schedule(
        &mut self,
        number: u8,
        becomes: impl Fn(&PossibleSchedule) -> Vec<PossibleSchedule>,
    ) {
        let possible = self.possible_schedules(number);
        *possible = possible.iter().flat_map(becomes).collect();
        possible.sort();
        possible.dedup();
    }

    /// The time during the current call: its beginning and now.
    fn call_time(&self) -> (Ms, Ms) {
        (self.call_began.unwrap_or(self.now), self.now)
    }

    /// Records a `put_schedule` that returned, and checks its answer.
    pub(crate) fn schedule_put(
        &mut self,
        number: u8,
        definition: u8,
        answer: ScheduleStored,
    ) -> CheckResult {
        let time = self.call_time();
        self.keep_schedule(number, &format!("R28: {answer:?}"), |it| {
            it.put_answer(definition) == answer
        })?;
        self.change_schedule(number, |it| vec![it.put(definition, time)]);
        Ok(())
    }

    /// Records a `put_schedule` whose reply was lost.
    pub(crate) fn maybe_put(&mut self, number: u8, definition: u8) {
        let time = self.call_time();
        self.change_schedule(number, |it| vec![it.clone(), it.put(definition, time)]);
    }

    /// Records a `remove_schedule` that returned, and checks its answer.
    pub(crate) fn schedule_removed(&mut self, number: u8, was: bool) -> CheckResult {
        let rule = format!("R28: removed, {was}");
        self.keep_schedule(number, &rule, |it| it.stored.is_some() == was)?;
        self.change_schedule(number, |it| vec![it.removed()]);
        Ok(())
    }

    /// Records a `remove_schedule` whose reply was lost.
    pub(crate) fn maybe_removed(&mut self, number: u8) {
        self.change_schedule(number, |it| vec![it.clone(), it.removed()]);
    }

    /// Records a `push_tick` that returned, and checks its answer.
    pub(crate) fn ticked(
        &mut self,
        tick: TickOf,
        push: &PushCall,
        answer: &Ticked,
    ) -> CheckResult {
        let rule = format!("R28: a tick at {} ms is {answer:?}", tick.at);
        let (began, now) = self.call_time();
        match answer {
            Ticked::Pushed(pushed) => self.was_pushed(tick, push, pushed, &rule),
            Ticked::NotLater => self.keep_schedule(tick.schedule, &rule, |it| {
                it.stored.is_some_and(|it| tick.at <= it.last.1 + ROUNDING)
            }),
            Ticked::Changed => {
                self.keep_schedule(tick.schedule, &rule, |it| !it.is_of(tick))
            }
            Ticked::NotDue(wait) => {
                let due = (began + ms(*wait), now + ms(*wait));
                let is_right = !wait.is_zero()
                    && due.0 <= tick.at + ROUNDING
                    && tick.at <= due.1 + ROUNDING;
                if is_right { Ok(()) } else { Err(format!("{rule}, at {now} ms")) }
            }
        }
    }

    fn was_pushed(
        &mut self,
        tick: TickOf,
        push: &PushCall,
        pushed: &Pushed,
        rule: &str,
    ) -> CheckResult {
        let now = self.now;
        self.keep_schedule(tick.schedule, rule, |it| it.after(tick, now).is_some())?;
        self.change_schedule(tick.schedule, |it| {
            it.after(tick, now).into_iter().collect()
        });
        self.pushed(push, None, std::slice::from_ref(pushed))
    }

    /// Records a `push_tick` whose reply was lost: its job may be stored and its tick
    /// recorded.
    pub(crate) fn maybe_ticked(&mut self, tick: TickOf, push: &PushCall) {
        let call = self.step;
        self.tick_is_lost(tick, false);
        if self.may_record(tick, call) {
            self.maybe_pushed(push);
        } else {
            self.push_is_late(push);
        }
    }

    /// Records a `push_tick` whose command was delayed and may run later. Returns the
    /// number of the call, for [`Self::maybe_ticked_late`].
    pub(crate) fn tick_is_late(&mut self, tick: TickOf, push: &PushCall) -> u32 {
        self.tick_is_lost(tick, true);
        self.push_is_late(push)
    }

    /// Records that a part of a lost tick may run later, after another part that may have
    /// run before.
    pub(crate) fn lost_tick_is_late(&mut self) -> u32 {
        let call = self.step;
        let lost = self.lost_ticks.iter_mut().filter(|lost| lost.call == call);
        lost.for_each(|lost| lost.is_late = true);
        call
    }

    /// Records that a delayed tick may have run by now.
    pub(crate) fn maybe_ticked_late(&mut self, tick: TickOf, call: u32) {
        let lost = self.lost_ticks.iter_mut().filter(|lost| lost.call == call);
        lost.for_each(|lost| lost.is_late = false);
        if self.may_record(tick, call) {
            self.maybe_stored_now(call);
        }
    }

    fn tick_is_lost(&mut self, tick: TickOf, is_late: bool) {
        let (call, schedule) = (self.step, tick.schedule);
        self.lost_ticks.push(LostTick { call, schedule, is_late });
    }

    /// Adds the states in which the lost tick is recorded. Returns whether there are any.
    fn may_record(&mut self, tick: TickOf, call: u32) -> bool {
        let now = self.now;
        let recorded = |it: &PossibleSchedule| {
            let mut after = it.after(tick, now)?;
            after.ticked.push(call);
            Some(after).filter(|_| !it.ticked.contains(&call))
        };
        self.change_schedule(tick.schedule, |it| {
            [it.clone()].into_iter().chain(recorded(it)).collect()
        });
        self.schedules[&tick.schedule].iter().any(|it| it.ticked.contains(&call))
    }

    /// Checks a list of all schedules.
    pub(crate) fn schedules_seen(&mut self, found: &Schedules) -> CheckResult {
        let (began, now) = self.call_time();
        let known: Vec<u8> = self.schedules.keys().copied().collect();
        let name = |number: &u8| draft::schedule(*number);
        let is_known =
            |schedule: &&Schedule| known.iter().any(|it| name(it) == schedule.name);
        if let Some(other) = found.schedules.iter().find(|it| !is_known(it)) {
            return Err(format!("UNEXPECTED, R28: {} was never stored", other.name));
        }
        for number in known {
            let entry = found.schedules.iter().find(|it| it.name == name(&number));
            let entry = entry.map(|schedule| {
                let ago = ms(found.now.since(schedule.last_tick));
                (schedule, (began.saturating_sub(ago), now.saturating_sub(ago)))
            });
            let rule = format!("R28: listed as {entry:?}");
            self.keep_schedule(number, &rule, |it| it.is_listed_as(entry.as_ref()))?;
            if let Some((_, last)) = entry {
                self.change_schedule(number, |it| vec![it.of_time(last)]);
            }
        }
        Ok(())
    }

    /// R28: the job of a lost tick is stored if and only if its tick is recorded. As soon
    /// as one of the two is known, the other is.
    pub(crate) fn ticks_are_whole(&mut self) -> CheckResult {
        for lost in self.lost_ticks.clone().into_iter().filter(|lost| !lost.is_late) {
            self.recorded_as_pushed(&lost)?;
            let has_it = |it: &PossibleSchedule| it.ticked.contains(&lost.call);
            let possible = &self.schedules[&lost.schedule];
            let (all, any) = (possible.iter().all(has_it), possible.iter().any(has_it));
            if all != any {
                continue;
            }
            for at in 0..self.jobs.len() {
                if self.jobs[at].call == lost.call {
                    let rule =
                        "R28: a tick is recorded without its job, or the reverse";
                    self.keep(at, rule, |possible| possible.is_absent() != all)?;
                }
            }
            self.lost_ticks.retain(|other| *other != lost);
            self.change_schedule(lost.schedule, |it| vec![it.without(lost.call)]);
        }
        Ok(())
    }

    /// Drops the states of a schedule that contradict what is known about the job of a
    /// lost tick.
    fn recorded_as_pushed(&mut self, lost: &LostTick) -> CheckResult {
        let job = self.jobs.iter().find(|job| job.call == lost.call);
        let Some(job) = job else { return Ok(()) };
        let all = job.possible_states.iter().all(PossibleState::is_absent);
        let any = job.possible_states.iter().any(PossibleState::is_absent);
        if all != any {
            return Ok(());
        }
        let rule =
            format!("R28: a job without its tick, or the reverse: {}", job.tell());
        self.keep_schedule(lost.schedule, &rule, |it| {
            it.ticked.contains(&lost.call) != all
        })
    }

    /// The possible states of each schedule as text. `None` stands for no schedule.
    pub(crate) fn schedules_told(&self) -> Vec<Vec<Option<String>>> {
        let told = |(number, possible): (&u8, &Vec<PossibleSchedule>)| {
            let told = |it: &PossibleSchedule| {
                let StoredSchedule { definition, last } = it.stored?;
                let (name, definition) =
                    (draft::schedule(*number), draft::definition(definition));
                let last = Some(last.0).filter(|_| last.0 == last.1);
                Some(tell(name.as_str(), &definition, last))
            };
            possible.iter().map(told).collect()
        };
        self.schedules.iter().map(told).collect()
    }
}

impl PossibleSchedule {
    /// The state with the more exact time of its last tick.
    fn of_time(&self, last: (Ms, Ms)) -> Self {
        let exact = |mut stored: StoredSchedule| {
            if stored.last.0 < stored.last.1 {
                let (from, to) = stored.last;
                stored.last = (last.0.clamp(from, to), last.1.clamp(from, to));
            }
            stored
        };
        Self { stored: self.stored.map(exact), ..self.clone() }
    }

    fn without(&self, call: u32) -> Self {
        let mut without = self.clone();
        without.ticked.retain(|other| *other != call);
        without
    }

    /// The numbers of the lost ticks in it.
    pub(crate) fn operations(&mut self) -> impl Iterator<Item = &mut u32> {
        self.ticked.iter_mut()
    }
}

/// A stored schedule as text. All ticks of a scenario are at whole seconds after its
/// beginning, and its schedules are stored at its beginning or between two seconds. So the
/// text does not depend on when a repeated call stored it.
pub(crate) fn tell(name: &str, definition: &[u8], last: Option<Ms>) -> String {
    let last = match last {
        Some(last) if last > 0 && last.is_multiple_of(1000) => {
            format!("tick {last} ms")
        }
        _ => "no tick".to_owned(),
    };
    format!("{name}, {}, {last}", definition.escape_ascii())
}

/// The call that pushes the job of a tick.
pub(crate) fn push_of(job: NewJob) -> PushCall {
    PushCall::of(vec![job])
}
