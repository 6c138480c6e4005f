//! Finds the master that sentinels watch.
//!
//! All sentinels are asked at the same time. An answer counts only if the server that it
//! names says itself that it is a master: a sentinel that was cut off still names the
//! master of before. The servers that sentinels name are tried at the same time, too. So
//! neither a sentinel nor a server that is dead or frozen delays anything, as long as
//! another sentinel names the master.

use std::{fmt, io, sync::Arc};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use redis::{ErrorKind, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult};
use tokio::task::AbortHandle;

use super::{
    Address,
    address::{Tried, listed},
    switched::{Listener, Switches},
};
use crate::{RedisConfig, error::MISCONFIGURED, link::Link};

/// The sentinels of one service.
pub(crate) struct Sentinels {
    addresses: Vec<Address>,
    /// The name by which the sentinels know the master.
    service: String,
    user: Option<String>,
    password: Option<String>,
    pub(super) switches: Switches,
}

impl Sentinels {
    pub(super) fn new(
        addresses: Vec<Address>,
        service: &str,
        user: Option<String>,
        password: Option<String>,
    ) -> Self {
        let (service, switches) = (service.to_owned(), Switches::default());
        Self { addresses, service, user, password, switches }
    }

    /// Connects to the master. The connection is closed when a sentinel announces
    /// another master.
    ///
    /// # Errors
    /// When no sentinel can be reached, when none of them knows the service, or when
    /// the server that they name is not a master yet.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        config: &RedisConfig,
    ) -> RedisResult<Link> {
        let tried = Tried::default();
        let finding =
            self.addresses.iter().map(|sentinel| self.find(sentinel, &tried, config));
        let mut found: FuturesUnordered<_> = finding.collect();
        let mut failure = None;
        while let Some(found) = found.next().await {
            match found {
                Ok(None) => {}
                Ok(Some((master, link))) => {
                    self.switches.follow((master, &link), || self.listeners(config));
                    return Ok(link);
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| self.unknown()))
    }

    /// Connects to the master that a sentinel names. `None` if it does not know the
    /// service, or if another sentinel has named the same server.
    async fn find(
        &self,
        sentinel: &Address,
        tried: &Tried,
        config: &RedisConfig,
    ) -> RedisResult<Option<(Address, Link)>> {
        match self.ask(sentinel, config).await? {
            Some(master) if tried.is_first(&master) => {
                let link = self.connect_to(&master, config).await?;
                Ok(Some((master, link)))
            }
            _ => Ok(None),
        }
    }

    /// Starts to listen to each sentinel.
    fn listeners(self: &Arc<Self>, config: &RedisConfig) -> Vec<AbortHandle> {
        let this = Arc::downgrade(self);
        let listener = |sentinel| {
            Listener::new(&this, sentinel, (&self.service, self.settings()), config)
        };
        self.addresses.iter().map(|sentinel| listener(sentinel).spawn()).collect()
    }

    /// Asks a sentinel for the master's address. `None` if it does not know the
    /// service.
    async fn ask(
        &self,
        sentinel: &Address,
        config: &RedisConfig,
    ) -> RedisResult<Option<Address>> {
        let link = Link::connect(config, sentinel, &self.settings()).await;
        let mut asking = redis::cmd("SENTINEL");
        asking.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        let master: Option<(String, u16)> =
            link?.ask(&asking, config.connect_timeout).await?;
        Ok(master.map(|(host, port)| Address::told(&host, port, sentinel)))
    }

    async fn connect_to(
        &self,
        master: &Address,
        config: &RedisConfig,
    ) -> RedisResult<Link> {
        let settings = config.info.redis_settings();
        let mut link = Link::connect(config, master, settings).await?;
        let role: redis::Value =
            link.ask(&redis::cmd("ROLE"), config.connect_timeout).await?;
        let role = role.as_sequence().and_then(<[_]>::first);
        let role: String =
            role.map(redis::from_redis_value_ref).transpose()?.unwrap_or_default();
        if role == "master" {
            return Ok(link);
        }
        let text = format!(
            "{master}: the sentinels name it as the master of {:?}, and it is a {role}",
            self.service
        );
        Err(io::Error::new(io::ErrorKind::NotConnected, text).into())
    }

    fn settings(&self) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        settings
    }

    fn unknown(&self) -> RedisError {
        let text = format!(
            "no sentinel of {} knows the service {:?}: give the name of `sentinel \
             monitor`",
            listed(&self.addresses),
            self.service
        );
        (ErrorKind::InvalidClientConfig, MISCONFIGURED, text).into()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", listed(&self.addresses), self.service)
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sentinels({self})")
    }
}
