//! `conformance report`: the whole suite on one of relq's backends.

mod json;
mod junit;

use std::path::PathBuf;

use relq_conformance::{
    Profile, Subject,
    own::{
        Circular, Keyspace, ProcessingList, ProcessingListShared, Sqlite, Stream, Zset,
    },
    report::{Chosen, Report, expected, judge},
    server::{Choice, GivenServer},
};

use crate::{SuiteResult, backend::Backend};

/// Run the suite on a backend and print a table
///
/// Runs every functional case, every act with every fault at every step (by a proxy
/// before Redis, or by killing processes), and random sequences against a model. Exits
/// with 1 when the backend breaks a promise. Prints the table too, except with --json,
/// which prints one object.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The backend to test
    #[arg(long, value_enum)]
    backend: Backend,

    /// A Redis server to run on: EVERYTHING IN IT IS DELETED. Without
    /// it the suite starts private servers
    ///
    /// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], rediss://… for TLS (feature
    /// `tls`), or unix:///PATH[?db=…&user=…&pass=…]. The user needs all
    /// rights: the suite fills the server, and makes it forget its scripts. Set
    /// RELQ_TEST_SERVER=URL in place of --url to keep a password out of the list of
    /// processes.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The PEM file of the authority that signed the server's certificate
    #[arg(long, value_name = "F", requires = "url")]
    cacert: Option<PathBuf>,

    /// Run only the cases whose ids begin with this
    #[arg(long, value_name = "ID")]
    only: Option<String>,

    /// Judge nothing: report what a backend with these capabilities gets if it keeps
    /// all its promises
    ///
    /// To check documents after the tests have passed.
    #[arg(long, conflicts_with_all = ["only", "url"])]
    expected: bool,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args, Debug)]
#[group(multiple = false)]
struct Format {
    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Write the report as JUnit XML to this file
    #[arg(long, value_name = "F")]
    junit: Option<PathBuf>,

    /// Write the report to this Markdown file, between its marks. Repeatable
    ///
    /// The marks are <!-- conformance of BACKEND: begin --> for a table of this
    /// backend, <!-- conformance matrix: begin --> for a table of all backends, in
    /// which this backend's column is replaced, and
    /// <!-- conformance summary: begin --> for a summary, in which its row is replaced.
    /// Each has an end mark with `end` in place
    /// of `begin`. A new file gets the table of this backend.
    #[arg(long, value_name = "F", conflicts_with = "only")]
    markdown: Vec<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> SuiteResult<bool> {
        if let Some(url) = &self.url {
            if self.backend == Backend::Sqlite {
                return Err(
                    "--url is for backends on Redis: sqlite has no server".into()
                );
            }
            let server = GivenServer::at(url, self.cacert.as_deref())?;
            server.answers().map_err(|error| format!("{server:?}: {error}"))?;
            Choice::Given(server).set();
        }
        let mut report = match self.backend {
            Backend::Zset => self.report::<Zset>(Profile::Redis),
            Backend::Circular => self.report::<Circular>(Profile::Redis),
            Backend::ProcessingList => self.report::<ProcessingList>(Profile::Redis),
            Backend::ProcessingListShared => {
                self.report::<ProcessingListShared>(Profile::Redis)
            }
            Backend::Keyspace => self.report::<Keyspace>(Profile::Redis),
            Backend::Stream => self.report::<Stream>(Profile::Redis),
            Backend::Sqlite => self.report::<Sqlite>(Profile::Embedded),
        };
        // The name tells the modes of one backend apart.
        report.backend = self.backend.name();
        self.format.show(&report)?;
        Ok(report.is_clean())
    }

    fn report<S: Subject + Default>(&self, profile: Profile) -> Report {
        if self.expected {
            return expected::<S>(profile);
        }
        judge::<S>(profile, &self.only.clone().map_or(Chosen::All, Chosen::Only))
    }
}

impl Format {
    fn show(&self, report: &Report) -> SuiteResult<()> {
        if self.json {
            println!("{}", json::of(report)?);
            return Ok(());
        }
        print!("{report}");
        if let Some(file) = &self.junit {
            std::fs::write(file, junit::of(report))?;
        }
        for file in &self.markdown {
            report.write_markdown(file)?;
        }
        Ok(())
    }
}
