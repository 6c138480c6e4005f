//! Decides which requests are served, and whose they are.
//!
//! Four checks stand before every page, in this order:
//!
//! 1. **Host.** A web page of an attacker can have a name that resolves to this address
//!    (DNS rebinding), and then reads the page as if it were its own. Only the names of the
//!    settings are served; others get 421.
//! 2. **Sign-in.** A token, or a user and a password, in a header or by the sign-in page,
//!    which begins a session. The cookie of the session holds a random name; it is hidden
//!    from scripts and not sent with requests of other sites (`HttpOnly`,
//!    `SameSite=Strict`). Attempts wait for each other ([`attempts`]); of too many at once
//!    from one address, some get 429.
//! 3. **Read-only.** A page that is read-only refuses every POST but those of the sign-in.
//! 4. **Origin.** A POST must come from a page of this host ([`origin`]). This does not
//!    rest on the cookie, so it also holds where no sign-in is needed.

mod attempts;
mod guard;
mod host;
mod origin;
mod secret;
mod sessions;

pub(crate) use guard::{Guarded, guard, is_https};
pub(crate) use host::Hosts;
pub use secret::InvalidSecret;
pub(crate) use sessions::{Cookie, Sessions};

use axum::http::{HeaderMap, header::AUTHORIZATION};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secret::Secret;

/// The rule that decides which visitors may use the page.
#[derive(Debug)]
pub struct Access(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    CheckedByCaller,
    Token(Secret),
    Password { user: String, password: Secret },
}

impl Access {
    /// Every visitor who has this token. It is given on the sign-in page, or in a header:
    /// `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    /// [`InvalidSecret`] for a token of less than 16 bytes.
    pub fn token(token: &str) -> Result<Self, InvalidSecret> {
        Ok(Self(Kind::Token(Secret::new(token, 16)?)))
    }

    /// Every visitor who has this password. It is given on the sign-in page, or in a
    /// header: `Authorization: Basic …`.
    ///
    /// # Errors
    /// [`InvalidSecret`] for a password of less than 8 bytes, and for a name that is empty
    /// or has a colon.
    pub fn password(user: &str, password: &str) -> Result<Self, InvalidSecret> {
        if user.is_empty() || user.contains(':') {
            return Err(InvalidSecret::User);
        }
        let password = Secret::new(password, 8)?;
        Ok(Self(Kind::Password { user: user.to_owned(), password }))
    }

    /// Every visitor who reaches the page, because the caller checks the visitors: by a
    /// layer around the router, or by an address that only trusted users reach. Host
    /// names and the origin of a POST are still checked.
    pub fn checked_by_caller() -> Self {
        Self(Kind::CheckedByCaller)
    }

    /// The visitor to whom the credentials belong; `None` if they are wrong.
    pub(crate) fn check(&self, given: &Credentials) -> Option<Actor> {
        match &self.0 {
            Kind::CheckedByCaller => None,
            Kind::Token(token) => {
                token.is(&given.secret).then(|| Actor("token".to_owned()))
            }
            Kind::Password { user, password } => {
                // Both are compared, so that the time does not tell which is wrong.
                let is_user = Secret::exact(user).is(&given.user);
                let is_password = password.is(&given.secret);
                (is_user & is_password).then(|| Actor(user.clone()))
            }
        }
    }

    /// Whether visitors sign in and out on pages of their own.
    pub(crate) fn has_sign_in(&self) -> bool {
        !matches!(self.0, Kind::CheckedByCaller)
    }

    pub(crate) fn has_user(&self) -> bool {
        matches!(self.0, Kind::Password { .. })
    }
}

/// The name of a visitor, for the log. A layer of the application that knows its users can
/// insert it as an extension of the request:
/// `request.extensions_mut().insert(Actor("anna".to_owned()))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(pub String);

/// The token, or the name and password, with which a visitor signs in.
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) secret: String,
}

impl Credentials {
    /// Reads the header `Authorization`; `None` without one that can be read.
    fn of_header(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, given) = value.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            let secret = given.trim().to_owned();
            return Some(Self { user: String::new(), secret });
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let pair = String::from_utf8(STANDARD.decode(given.trim()).ok()?).ok()?;
        let (user, secret) = pair.split_once(':')?;
        Some(Self { user: user.to_owned(), secret: secret.to_owned() })
    }
}
