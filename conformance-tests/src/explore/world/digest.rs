//! The digest of a state.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::{World, at_proxy};

/// The groups of all streams, which the server's own digest leaves out: their positions
/// and pending entries, without the times of the server's own clock.
const STREAMS: &str = "-- the suite's own\n\
    local parts = {} \
    local function add(...) for _, part in ipairs({...}) do \
      parts[#parts + 1] = tostring(part) end end \
    for _, key in ipairs(redis.call('KEYS', '*')) do \
      if redis.call('TYPE', key).ok == 'stream' then \
        for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
          add(key, group[2], group[8]) \
          local pending = redis.call('XPENDING', key, group[2], '-', '+', 1000) \
          for _, one in ipairs(pending) do add(one[1], one[2], one[4]) end \
        end end end \
    return parts";

impl World {
    /// What decides everything that can follow: the server's data, the time, the replies
    /// that each actor got, the commands that wait, and which call ended before which
    /// began.
    pub(in super::super) async fn digest(&mut self) -> Result<u64, String> {
        let parked = self.settle_down().await?;
        let mut hasher = DefaultHasher::new();
        for command in [&["DEBUG", "DIGEST"][..], &["EVAL", STREAMS, "0"]] {
            self.proxy.tell(command).await.map_err(at_proxy)?.hash(&mut hasher);
        }
        format!("{:?}", self.clock).hash(&mut hasher);
        (self.time.len(), self.deaths_left).hash(&mut hasher);
        for step in &parked {
            (&step.actor, step.label()).hash(&mut hasher);
        }
        for actor in self.actors.values() {
            actor.endpoint.replies().hash(&mut hasher);
        }
        let state = self.shared.state();
        let mut calls: Vec<_> = state.history.overlapping.iter().enumerate().collect();
        calls.sort_by_key(|(_, one)| one.call.operation.who);
        let mut names = BTreeMap::new();
        for (number, (at, one)) in calls.into_iter().enumerate() {
            names.insert(at, number);
            format!("{:?}", one.call).hash(&mut hasher);
            one.ended.is_some().hash(&mut hasher);
        }
        let mut pairs: Vec<_> = state
            .history
            .precedence()
            .into_iter()
            .map(|(one, other)| (names[&one], names[&other]))
            .collect();
        pairs.sort_unstable();
        pairs.hash(&mut hasher);
        let mut dead: Vec<_> = state.ended.clone();
        dead.sort_unstable();
        format!("{dead:?}").hash(&mut hasher);
        Ok(hasher.finish())
    }
}
