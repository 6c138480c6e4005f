//! The random choices of the server, as decisions of the suite.
//!
//! The explorer must know every answer of a command such as `RANDOMKEY`, and must get
//! the same answer when it makes the same decisions again. So the shim of
//! `time_shim.lua` answers such a command from the sorted list of all keys or members,
//! as the suite's [`Draws`] say. A script reads its draws in each of its random commands
//! anew, except that `RANDOMKEY` goes on to the next draw at each call.

use std::{
    collections::{BTreeSet, HashSet},
    fmt, io,
    str::FromStr,
};

use bytes::Bytes;

use super::{
    command::Kind, reply::is_error, request::Request, rewrite, shared::Shared,
};

/// The most draws of one script. Four draws arrange four members in every order.
const MOST_DRAWS: usize = 4;

/// The number of answers from which on no more are searched for. Five members have 120
/// orders.
const MOST_ANSWERS: usize = 150;

/// The script that the server runs in place of a command whose reply varies from run to
/// run.
pub(super) const AS_SCRIPT: &str = "#!lua flags=no-writes
-- a command whose reply varies
return redis.call(unpack(ARGV))";

/// Returns the number of keys, and the sizes of the largest set and sorted set.
const SIZES: &str = "#!lua flags=no-writes
-- the suite's own
local sizes = {set = 0, zset = 0}
local keys = redis.call('KEYS', '*')
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local count = kind == 'set' and 'SCARD' or kind == 'zset' and 'ZCARD'
  if count then sizes[kind] = math.max(sizes[kind], redis.call(count, key)) end
end
return {#keys, sizes.set, sizes.zset}";

/// The places that a script or command draws at random from the sorted list of all keys or
/// members.
///
/// `RANDOMKEY` returns the key at the place of the first draw, then that of the second,
/// and that of the last draw again and again. From any other list, each draw moves the
/// member at that place to the front. Without draws, `RANDOMKEY` returns one key after
/// the other, and lists are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Draws {
    places: [u8; MOST_DRAWS],
    count: usize,
}

impl Draws {
    /// These draws and one more. `None` if they are too many.
    fn then(mut self, place: u8) -> Option<Self> {
        *self.places.get_mut(self.count)? = place;
        self.count += 1;
        Some(self)
    }

    fn of(places: &[u8]) -> Option<Self> {
        places.iter().try_fold(Self::default(), |draws, place| draws.then(*place))
    }

    fn places(&self) -> &[u8] {
        &self.places[..self.count]
    }

    /// The number of draws.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl fmt::Display for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.places().iter().map(u8::to_string);
        f.write_str(&places.collect::<Vec<_>>().join("."))
    }
}

impl FromStr for Draws {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` are not places, such as 2.0");
        let places: Result<Vec<u8>, _> = text.split('.').map(str::parse).collect();
        Self::of(&places.map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

/// Where a script or command draws from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DrawsFrom {
    keys: bool,
    sets: bool,
    sorted_sets: bool,
    /// Whether it only reads, so that it can be tried.
    is_read_only: bool,
}

impl DrawsFrom {
    /// The random commands in the text of a script. Comments do not count.
    pub(super) fn script(source: &[u8]) -> Self {
        let text = String::from_utf8_lossy(source);
        let flags = text.lines().next().filter(|line| line.starts_with("#!"));
        let code = text.lines().filter_map(|line| line.split("--").next());
        let words = code.flat_map(|line| line.split(|it: char| !it.is_alphanumeric()));
        words.fold(
            Self {
                is_read_only: flags.is_some_and(|flags| flags.contains("no-writes")),
                ..Self::default()
            },
            |all, word| all.or(Self::command(&word.to_ascii_uppercase())),
        )
    }

    /// The lists that the command of that name draws from.
    pub(super) fn command(name: &str) -> Self {
        Self {
            keys: matches!(name, "RANDOMKEY" | "SCAN"),
            sets: matches!(name, "SRANDMEMBER" | "SSCAN"),
            sorted_sets: name == "ZRANDMEMBER",
            is_read_only: true,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            keys: self.keys || other.keys,
            sets: self.sets || other.sets,
            sorted_sets: self.sorted_sets || other.sorted_sets,
            ..self
        }
    }

    /// Whether the answer is random.
    pub(super) fn is_random(self) -> bool {
        self.keys || self.sets || self.sorted_sets
    }
}

impl Shared {
    /// Returns the draws that lead to different answers of a request, the first of them
    /// without draws. A request that only reads is sent to the server with one set of
    /// draws after another, and those that change the reply are returned. For a request
    /// that writes, all draws are returned that arrange three members in every order or
    /// that draw any one member first.
    pub(crate) async fn draws(&self, request: &Request) -> io::Result<Vec<Draws>> {
        let kind = Kind::of(request);
        let from = rewrite::draws_from(self, kind, request);
        let places = if from.is_random() { self.places(from).await? } else { 0 };
        match places {
            0 | 1 => Ok(vec![Draws::default()]),
            _ if from.is_read_only => self.tried(kind, request, places).await,
            _ => Ok(every_first_and_order(places)),
        }
    }

    /// The size of the largest list that is drawn from.
    async fn places(&self, from: DrawsFrom) -> io::Result<u8> {
        let reply = self.server.ask(&["EVAL", SIZES, "0"]).await?;
        let text = String::from_utf8_lossy(&reply);
        let sizes = text.split("\r\n").filter_map(|line| line.strip_prefix(':'));
        let sizes = sizes.zip([from.keys, from.sets, from.sorted_sets]);
        let drawn = sizes.filter(|(_, is_drawn)| *is_drawn);
        let largest = drawn.filter_map(|(size, _)| size.parse::<u64>().ok()).max();
        Ok(u8::try_from(largest.unwrap_or(0)).unwrap_or(u8::MAX))
    }

    /// Finds the draws for a request that only reads, by sending it. Each round extends the
    /// kept draws by one more, and keeps those that give a new reply. After the first
    /// round, only the places are drawn whose draw alone gave a new reply.
    async fn tried(
        &self,
        kind: Kind,
        request: &Request,
        places: u8,
    ) -> io::Result<Vec<Draws>> {
        let mut kept = vec![Draws::default()];
        let mut replies: HashSet<Bytes> =
            self.replies(kind, request, &kept).await?.into_iter().collect();
        let (mut at, mut places): (_, Vec<_>) = (0, (0..places).collect());
        while let Some(draws) = kept.get(at).copied() {
            if kept.len() >= MOST_ANSWERS {
                break;
            }
            let next = places.iter().filter_map(|place| draws.then(*place));
            let next: Vec<_> = next.collect();
            let answers = self.replies(kind, request, &next).await?;
            for (draws, reply) in next.into_iter().zip(answers) {
                if replies.insert(reply) {
                    kept.push(draws);
                }
            }
            if at == 0 {
                places = kept
                    .iter()
                    .flat_map(|draws| draws.places().first())
                    .copied()
                    .collect();
            }
            at += 1;
        }
        Ok(kept)
    }

    async fn replies(
        &self,
        kind: Kind,
        request: &Request,
        all: &[Draws],
    ) -> io::Result<Vec<Bytes>> {
        let pieces = all.iter().map(|draws| {
            self.scripts().draw(*draws);
            rewrite::timed(self, kind, request)
        });
        let pieces: Vec<_> = pieces.flatten().collect();
        let replies = self.server.ask_all(&pieces, all.len()).await?;
        match replies.iter().find(|reply| is_error(reply)) {
            // An error is the only reply, whatever the draws, so that the actor gets it.
            Some(error) => Ok(vec![error.clone(); all.len()]),
            None => Ok(replies),
        }
    }
}

/// The draws that arrange up to three members in every order, and those that draw any
/// one member first.
fn every_first_and_order(places: u8) -> Vec<Draws> {
    let three = places.min(3);
    let orders = (1..three).flat_map(|one| (1..three).map(move |other| [one, other]));
    let orders =
        orders.filter(|order| *order != [1, 1]).filter_map(|it| Draws::of(&it));
    let firsts = (1..places).filter_map(|place| Draws::of(&[place]));
    let all: BTreeSet<_> = firsts.chain(orders).collect();
    [Draws::default()].into_iter().chain(all).collect()
}
