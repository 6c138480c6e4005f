//! The visitors that have signed in, in memory.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header::COOKIE};
use relq_core::environment::{OsRandomness, Randomness as _};

use super::Actor;

/// How long a session lasts.
const LENGTH: Duration = Duration::from_secs(12 * 60 * 60);

/// How many sessions there are at once. The one that ends first makes room.
const MOST: usize = 1000;

/// The sessions that have not ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// The name of the cookie. It is random, because browsers send a cookie to all ports of a
    /// host, where there may be other pages with sessions of their own.
    cookie: String,
    /// By the random names of the sessions, of 160 bits.
    known: Mutex<HashMap<String, (Actor, Instant)>>,
}

impl Default for Sessions {
    fn default() -> Self {
        let cookie = format!("relq_session_{}", OsRandomness.text(8));
        Self { cookie, known: Mutex::default() }
    }
}

impl Sessions {
    /// Begins a session, and returns its name.
    pub(crate) fn begin(&self, actor: Actor) -> String {
        let name = OsRandomness.text(32);
        let now = Instant::now();
        let mut known = self.known.lock().expect("no holder of the lock panics");
        known.retain(|_, (_, end)| *end > now);
        if known.len() >= MOST {
            let first = known.iter().min_by_key(|(_, (_, end))| *end);
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                known.remove(&first);
            }
        }
        known.insert(name.clone(), (actor, now + LENGTH));
        name
    }

    pub(crate) fn actor(&self, headers: &HeaderMap) -> Option<Actor> {
        let known = self.known.lock().expect("no holder of the lock panics");
        let (actor, end) = known.get(self.session_of(headers)?)?;
        (*end > Instant::now()).then(|| actor.clone())
    }

    pub(crate) fn end(&self, headers: &HeaderMap) {
        if let Some(name) = self.session_of(headers) {
            self.known.lock().expect("no holder of the lock panics").remove(name);
        }
    }

    /// The name of the session in the cookies of a request.
    fn session_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs =
            cookies.flat_map(|it| it.split(';')).filter_map(|it| it.split_once('='));
        pairs
            .find(|(name, _)| name.trim() == self.cookie)
            .map(|(_, value)| value.trim())
    }

    /// The cookie of a session.
    pub(crate) fn cookie<'a>(&'a self, base: &'a str, is_https: bool) -> Cookie<'a> {
        Cookie { name: &self.cookie, base, is_https }
    }
}

/// The name of a session's cookie, and where the cookie is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookie<'a> {
    name: &'a str,
    /// The base path, which may be empty.
    base: &'a str,
    /// Whether the visitor came by HTTPS.
    is_https: bool,
}

impl Cookie<'_> {
    /// The header `Set-Cookie` that begins a session.
    pub(crate) fn set(self, session: &str) -> String {
        self.with(session, LENGTH)
    }

    /// The header `Set-Cookie` that removes the cookie.
    pub(crate) fn remove(self) -> String {
        self.with("", Duration::ZERO)
    }

    fn with(self, value: &str, length: Duration) -> String {
        let name = self.name;
        let path = if self.base.is_empty() { "/" } else { self.base };
        let secure = if self.is_https { "; Secure" } else { "" };
        let age = length.as_secs();
        format!(
            "{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A visitor who signs in must not sign out the one before.
    #[test]
    fn the_session_that_ends_first_makes_room_for_a_new_one() {
        let sessions = Sessions::default();
        let begin = || sessions.begin(Actor("anna".to_owned()));
        let begun: Vec<_> = (0..MOST).map(|_| begin()).collect();
        let first = &begun[MOST / 2];
        sessions.known.lock().unwrap().get_mut(first).unwrap().1 -=
            Duration::from_secs(60);

        let last = begin();

        let known = sessions.known.lock().unwrap();
        assert_eq!(known.len(), MOST, "there are as many sessions as before");
        assert!(known.contains_key(&last), "the new session begins");
        let gone: Vec<_> =
            begun.iter().filter(|session| !known.contains_key(*session)).collect();
        assert_eq!(gone, [first], "only the session that ends first is over");
    }

    #[test]
    fn a_session_ends_after_twelve_hours() {
        let length = Duration::from_secs(12 * 60 * 60);
        let (sessions, began) = (Sessions::default(), Instant::now());
        let session = sessions.begin(Actor("anna".to_owned()));
        let cookie = format!("other=1; {}={session}", sessions.cookie).parse().unwrap();
        let headers = HeaderMap::from_iter([(COOKIE, cookie)]);
        let end = |sessions: &Sessions| sessions.known.lock().unwrap()[&session].1;
        assert!(sessions.actor(&headers).is_some());
        assert!(end(&sessions) >= began + length);
        assert!(end(&sessions) <= Instant::now() + length);

        sessions.known.lock().unwrap().get_mut(&session).unwrap().1 = Instant::now();

        assert!(sessions.actor(&headers).is_none());
    }
}
