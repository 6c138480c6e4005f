//! A master, two replicas, and three sentinels that watch them.

use std::time::Duration;

use super::{
    Deployment, Fault,
    links::Links,
    member::{Announced, Member, STORING, replicas_are_in_step, wait_until},
};
use crate::SuiteResult;

const SERVERS: usize = 3;
const SENTINELS: usize = 3;

/// The name under which the sentinels watch the master.
const SERVICE: &str = "main";

/// How long the sentinels may take to promote a replica, or to make an old master a
/// replica.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Watched {
    links: Links,
    /// The servers, and then the sentinels.
    members: Vec<Member>,
}

impl Watched {
    /// Starts the servers and the sentinels, and waits until all replicas are in step.
    pub(super) fn start() -> SuiteResult<Self> {
        let links = Links::new();
        let mut members: Vec<Member> = Vec::new();
        for at in 0..SERVERS {
            let master = members.first().map(|master| master.port);
            let follow = master.map_or(String::new(), |master| {
                format!("replicaof 127.0.0.1 {master}\n")
            });
            let server = Member::start(&links, u8::try_from(at)?, &[], |announced| {
                let port = announced.port;
                format!("{STORING}replica-announce-port {port}\n{follow}")
            })?;
            members.push(server);
        }
        let master = members[0].port;
        for at in SERVERS..SERVERS + SENTINELS {
            let arguments = ["--sentinel"];
            members.push(Member::start(
                &links,
                u8::try_from(at)?,
                &arguments,
                |announced| sentinel_configuration(announced, master),
            )?);
        }
        let this = Self { links, members };
        this.wait_until_in_step()?;
        Ok(this)
    }

    fn sentinels(&self) -> &[Member] {
        &self.members[SERVERS..]
    }

    /// The index of the server that the sentinel names as master.
    fn master_by(&self, sentinel: &Member) -> Result<usize, String> {
        let reply =
            sentinel.node.try_ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
        let reply = reply.map_err(|error| error.to_string())?;
        let port = reply.lines().nth(4).and_then(|port| port.parse().ok());
        let at = self.members.iter().position(|member| Some(member.port) == port);
        at.ok_or_else(|| format!("a sentinel names the master {reply:?}"))
    }

    /// Fails with the reason if a sentinel does not see all servers, or a replica is not
    /// in step.
    fn is_in_step(&self) -> Result<(), String> {
        let first = self.master_by(&self.sentinels()[0])?;
        for sentinel in self.sentinels() {
            if self.master_by(sentinel)? != first {
                return Err("the sentinels name different masters".into());
            }
            sees_all(sentinel)?;
        }
        let servers = &self.members[..SERVERS];
        servers.iter().try_for_each(Member::check_clients)?;
        let replicas = servers.iter().enumerate().filter(|(at, _)| *at != first);
        let replicas: Vec<_> = replicas.map(|(_, replica)| replica).collect();
        replicas_are_in_step(&servers[first], &replicas)
    }
}

impl Deployment for Watched {
    fn url(&self) -> String {
        let hosts = self.sentinels().iter().map(Member::address).collect::<Vec<_>>();
        format!("redis-sentinel://{}/{SERVICE}", hosts.join(","))
    }

    fn faults(&self) -> &'static [Fault] {
        &[Fault::Kill, Fault::Freeze, Fault::CutOff, Fault::RestartAll]
    }

    fn members(&mut self) -> &mut [Member] {
        &mut self.members
    }

    fn links(&self) -> &Links {
        &self.links
    }

    fn master(&self, _part: usize) -> SuiteResult<usize> {
        Ok(self.master_by(&self.sentinels()[0])?)
    }

    fn wait_until_promoted(&self, _part: usize, instead_of: usize) -> SuiteResult<()> {
        wait_until("a replica was promoted", LIMIT, || {
            for sentinel in self.sentinels() {
                let named = self.master_by(sentinel)?;
                let role = self.members[named].replication();
                if named != instead_of && role.is_ok_and(|role| role.is_master()) {
                    return Ok(());
                }
            }
            Err("no sentinel names another master".into())
        })
    }

    fn wait_until_in_step(&self) -> SuiteResult<()> {
        wait_until("all replicas are in step", LIMIT, || self.is_in_step())
    }
}

fn sentinel_configuration(announced: &Announced, master: u16) -> String {
    let port = announced.port;
    format!(
        "sentinel announce-ip 127.0.0.1\nsentinel announce-port {port}\n\
         sentinel monitor {SERVICE} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {SERVICE} 1000\n\
         sentinel failover-timeout {SERVICE} 5000\n\
         sentinel parallel-syncs {SERVICE} 2\n"
    )
}

/// Fails with the reason if the sentinel sees a server or a sentinel as down, or knows
/// fewer than there are.
fn sees_all(sentinel: &Member) -> Result<(), String> {
    let known = |what| {
        let reply = sentinel.node.try_ask(&["SENTINEL", what, SERVICE]);
        reply.map_err(|error| error.to_string())
    };
    let (master, replicas, others) =
        (known("MASTER")?, known("REPLICAS")?, known("SENTINELS")?);
    for (reply, flags, count) in [
        (&master, "master", 1),
        (&replicas, "slave", SERVERS - 1),
        (&others, "sentinel", SENTINELS - 1),
    ] {
        let seen: Vec<_> = fields(reply, "flags").collect();
        if seen != vec![flags; count] {
            return Err(format!("{} sees {seen:?}", sentinel.address()));
        }
    }
    Ok(())
}

/// The values of all fields of that name in a reply of a sentinel.
fn fields<'a>(reply: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines: Vec<_> = reply.lines().collect();
    let values = lines.windows(3).filter(move |at| at[0] == name).map(|at| at[2]);
    values.collect::<Vec<_>>().into_iter()
}
