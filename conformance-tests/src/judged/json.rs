//! A report for programs.

use conformance_tests::{
    model::Summary,
    report::{Counts, Judged, Report, Verdict},
};
use serde::Serialize;

#[derive(Serialize)]
struct Object<'a> {
    backend: &'a str,
    cases: usize,
    passed: usize,
    failed: usize,
    unclaimed: usize,
    steps: u64,
    faults_fired: u64,
    model: Option<Model>,
    list: Vec<Case<'a>>,
}

/// What the model played.
#[derive(Serialize)]
struct Model {
    sequences: u64,
    operations: u64,
    faults_fired: u64,
}

#[derive(Serialize)]
struct Case<'a> {
    id: &'a str,
    rules: &'a [&'a str],
    verdict: &'static str,
    steps: u64,
    faults_fired: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
}

/// The report as one object; its cases are under `list`.
pub(super) fn of(report: &Report) -> serde_json::Result<String> {
    let Counts { cases, passed, failed, unclaimed, steps, faults_fired } =
        report.counts();
    let list = report.cases.iter().map(|case| of_case(report, case)).collect();
    serde_json::to_string_pretty(&Object {
        backend: report.backend,
        cases,
        passed,
        failed,
        unclaimed,
        steps,
        faults_fired,
        model: report.played().map(of_model),
        list,
    })
}

fn of_model(played: Summary) -> Model {
    let Summary { sequences, operations, faults_fired } = played;
    Model { sequences, operations, faults_fired }
}

fn of_case<'a>(report: &Report, case: &'a Judged) -> Case<'a> {
    let (verdict, failure) = match &case.verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Unclaimed => ("unclaimed", None),
        Verdict::Failed(words) => ("failed", Some(words.as_str())),
    };
    Case {
        id: &case.id,
        rules: case.rules,
        verdict,
        steps: case.steps,
        faults_fired: case.faults_fired,
        failure,
        replay: failure.map(|_| report.replay(case)),
    }
}
