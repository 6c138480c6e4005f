//! Writes the page of measurements and its charts.

use std::{fmt::Write as _, fs, io, path::Path};

use crate::{
    charts, drawn_again,
    growth::{Growth, Many},
    results::Results,
    sample::Figures,
    text::{fine, short, whole},
    workload::Workload,
};

/// The name of the page's file.
pub(crate) const FILE: &str = "measurements.md";

/// The name of the folder with the charts. It is in the same folder as the page.
const CHARTS: &str = "measurements";

/// The line after which a person writes text. A new run of the benchmark keeps that
/// text.
const KEEP: &str = "<!-- what follows is written by hand and kept -->";

/// Writes the page and its charts into `folder`.
pub(crate) fn write(folder: &Path, results: &Results, command: &str) -> io::Result<()> {
    let charts = folder.join(CHARTS);
    fs::create_dir_all(&charts)?;
    let file = folder.join(FILE);
    let kept = match fs::read_to_string(&file) {
        Ok(old) => old.split_once(KEEP).map(|(_, kept)| kept.to_owned()),
        Err(_) => None,
    };
    let page = page(results, command);
    // Draw the charts from the rounded figures of the page, so that drawing them again
    // later gives the same charts.
    draw(&charts, &drawn_again::results(&page))?;
    fs::write(file, format!("{page}{KEEP}{}", kept.unwrap_or_else(|| "\n".to_owned())))
}

/// Draws the charts again from the figures of the page in `folder`.
pub(crate) fn redraw(folder: &Path) -> io::Result<()> {
    let page = fs::read_to_string(folder.join(FILE))?;
    let results = drawn_again::results(&page);
    if results.figures.is_empty() {
        return Err(io::Error::other(format!("{FILE} has no table of figures")));
    }
    draw(&folder.join(CHARTS), &results)
}

fn draw(folder: &Path, results: &Results) -> io::Result<()> {
    let file = |name: &str| folder.join(name);
    charts::throughput(results, &file("throughput.svg"))
        .and_then(|()| charts::hand_over(results, &file("hand-over.svg")))
        .and_then(|()| charts::growth(results, Many::Waiting, &file("waiting.svg")))
        .and_then(|()| charts::growth(results, Many::Leased, &file("leased.svg")))
        .map_err(|error| io::Error::other(error.to_string()))
}

fn page(results: &Results, command: &str) -> String {
    let mut page = format!(
        "# Measurements\n\n\
         This command wrote this page. Without `--release` its figures are worse:\n\n\
         ```sh\ncargo run --release -p relq-bench -- {}\n```\n\n\
         Medians of {} repetitions, payloads of {} bytes. In each repetition every \
         backend and the bare store did each workload in turn on the same server. \
         Compare the column *of raw*: the median of the ratios to the bare store \
         within a repetition (for W5, of the times: smaller is better). Each job was \
         counted: none was missing and none came twice, unless a line says void.\n\n\
         {}\n",
        command,
        results.repetitions,
        results.payload,
        machine(results),
    );
    page.push_str(WORKLOADS);
    page.push_str("![Jobs a second](measurements/throughput.svg)\n\n");
    page.push_str("![From push to handler](measurements/hand-over.svg)\n\n");
    for durability in results.durabilities() {
        workloads(&mut page, results, durability);
    }
    growth(&mut page, results);
    at_rest(&mut page, results);
    page
}

const WORKLOADS: &str = "\
| | workload | the bare store does |
|---|---|---|
| W1 | push one at a time | `LPUSH`; one row a transaction |
| W2 | push from 64 tasks | `LPUSH`, 64 tasks on one connection |
| W2b | push 100 a call | `LPUSH` in pipelines of 100; 100 rows a transaction |
| W3 | drain, one handler at a time | `LMOVE`, then `LREM`; two transactions |
| W3b | the same, 100 jobs prefetched | a script with `RPOP` and `ZADD`, then `ZREM`, 100 a call |
| W4 | drain, 64 handlers at once | `LMOVE` and `LREM` from 64 tasks on one connection |
| W4b | drain, 512 handlers at once | as W3b |
| W5 | from push to the handler of an idle worker | `LPUSH` to a waiting `BLMOVE` |

";

/// The line of the page that names the machine and the date of the run.
fn machine(results: &Results) -> String {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
    let now = now.to_string();
    let date = now.split('T').next().unwrap_or_default();
    let server = results.server.as_ref();
    let server = server.map(|server| format!(", {server}"));
    let server = server.unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, model)| model.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("Machine: {processors} processors, {model}{server}; {date}.\n")
}

fn workloads(page: &mut String, results: &Results, durability: &str) {
    let _ = writeln!(
        page,
        "## {durability}\n\n\
         | | backend | jobs/s | spread | of raw | p50 us | p99 us | commands/job | \
         round trips/job | bytes/job | Redis CPU us/job | memory B/job |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for workload in Workload::ALL {
        let of_it = results.figures.iter().filter(|figures| {
            figures.durability == durability && figures.workload == workload.name()
        });
        of_it.for_each(|figures| row(page, figures));
    }
    page.push('\n');
}

fn row(page: &mut String, figures: &Figures) {
    let spread = figures.jobs_per_s_spread;
    let spread = spread.map(|(from, to)| format!("{}..{}", short(from), short(to)));
    let void = if figures.exact == Some(false) { " (void)" } else { "" };
    let cells = [
        figures.workload.clone(),
        format!("{}{void}", figures.backend),
        figures.jobs_per_s.map(short).unwrap_or_default(),
        spread.unwrap_or_default(),
        figures.of_raw.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        whole(figures.p50_us),
        whole(figures.p99_us),
        fine(figures.commands_per_job),
        fine(figures.round_trips_per_job),
        whole(figures.bytes_per_job),
        fine(figures.redis_cpu_us_per_job),
        whole(figures.memory_bytes_per_job),
    ];
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn growth(page: &mut String, results: &Results) {
    page.push_str(
        "## Growth\n\n\
         Jobs are pushed, claimed and finished one after the other, while this number \
         of other jobs wait or are leased. Microseconds per job (Redis CPU us per \
         job).\n\n\
         ![Beside waiting jobs](measurements/waiting.svg)\n\n\
         ![Beside leased jobs](measurements/leased.svg)\n\n",
    );
    for (many, words) in [(Many::Waiting, "waiting"), (Many::Leased, "leased")] {
        let points: Vec<_> =
            results.growth.iter().filter(|growth| growth.many == many).collect();
        let mut sizes: Vec<_> = points.iter().map(|growth| growth.jobs).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let heads: Vec<_> =
            sizes.iter().map(|size| format!("{size} {words}")).collect();
        let _ = writeln!(page, "| backend | {} |", heads.join(" | "));
        let _ = writeln!(page, "|---|{}", "--:|".repeat(sizes.len()));
        for backend in results.backends() {
            let cell = |size: &u64| {
                let of_it = |growth: &&&Growth| {
                    growth.backend == backend && growth.jobs == *size
                };
                points.iter().find(of_it).map(|growth| cost(growth)).unwrap_or_default()
            };
            let cells: Vec<_> = sizes.iter().map(cell).collect();
            let _ = writeln!(page, "| {backend} | {} |", cells.join(" | "));
        }
        page.push('\n');
    }
}

fn cost(growth: &Growth) -> String {
    match growth.redis_cpu_us_per_job {
        Some(cpu) => format!("{:.0} ({cpu:.1})", growth.us_per_job),
        None => format!("{:.0}", growth.us_per_job),
    }
}

fn at_rest(page: &mut String, results: &Results) {
    page.push_str(
        "## Idle workers, and recovery after a death\n\n\
         The commands that the server runs in a second for an idle worker with 64 \
         slots, also inside of scripts. The time from the end of a dead worker's lease \
         (one second) until the last of its 100 jobs ran on another worker, whose \
         reaper runs every second.\n\n\
         | backend | idle commands/s | recovered, ms after the lease |\n|---|--:|--:|\n",
    );
    for at_rest in &results.at_rest {
        let _ = writeln!(
            page,
            "| {} | {} | {:.0} |",
            at_rest.backend,
            fine(at_rest.idle_commands_per_s),
            at_rest.recovered_ms_after_lease
        );
    }
    page.push('\n');
}
