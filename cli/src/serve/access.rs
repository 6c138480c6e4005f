//! The options of access to the page, and the refusal to serve a network without them.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use relq_web::Access;

use crate::{
    failure::{CommandResult, Failure},
    message::say,
};

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The options that say who may use the page.
#[derive(clap::Args, Debug)]
pub(super) struct Visitors {
    /// A file with the token that visitors must give, of at least 16 bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "password_file"])]
    token_file: Option<PathBuf>,

    /// The name that visitors must give
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,

    /// A file with the password of --user, of at least 8 bytes
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
}

impl Visitors {
    /// The access of these options. Refuses to serve anyone but this machine without a
    /// secret.
    pub(super) fn access(
        &self,
        listen: SocketAddr,
        hosts: &[String],
    ) -> CommandResult<Access> {
        let is_local = listen.ip().is_loopback();
        let invalid =
            |error: relq_web::InvalidSecret| Failure::Usage(error.to_string());
        let access = match (&self.token_file, &self.user, &self.password_file) {
            (Some(file), ..) => Access::token(&secret(file)?).map_err(invalid)?,
            (None, Some(user), Some(file)) => {
                Access::password(user, &secret(file)?).map_err(invalid)?
            }
            _ => {
                let foreign =
                    hosts.iter().find(|host| !LOOPBACK.contains(&host.as_str()));
                check_closed(is_local, listen, foreign)?;
                return Ok(Access::checked_by_caller());
            }
        };
        if !is_local {
            say(
                "relq: the page has no TLS: serve it to a network only behind a proxy that has",
            );
        }
        Ok(access)
    }
}

fn check_closed(
    is_local: bool,
    listen: SocketAddr,
    foreign: Option<&String>,
) -> CommandResult {
    let what = match foreign {
        Some(host) => format!("to answer to {host}"),
        None if !is_local => format!("to listen on {listen}"),
        None => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "{what}, the page needs --token-file FILE, or --user NAME and --password-file FILE"
    )))
}

/// The host names to which the page answers. An address that it listens on is among them:
/// no name can be made to resolve to another address than itself.
pub(super) fn hosts(listen: SocketAddr, given: &[String]) -> Vec<String> {
    let mut hosts = given.to_vec();
    if hosts.is_empty() {
        hosts.extend(LOOPBACK.map(str::to_owned));
    }
    if !listen.ip().is_loopback() && !listen.ip().is_unspecified() {
        hosts.push(match listen {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
    }
    hosts
}

/// Reads a secret from a file, without the newline at its end.
fn secret(file: &Path) -> CommandResult<String> {
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::Failed(format!("cannot read the file {}: {error}", file.display()))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
