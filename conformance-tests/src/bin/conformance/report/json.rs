//! The report as JSON, for other programs.

use relq_conformance::{
    report::{CaseResult, Counts, Judged, Report},
    spec::Summary,
};
use serde::Serialize;

#[derive(Serialize)]
struct Object<'a> {
    backend: &'a str,
    cases: usize,
    passed: usize,
    failed: usize,
    unsupported: usize,
    steps: u64,
    faults_fired: u64,
    model: Option<Model>,
    list: Vec<Case<'a>>,
}

/// How many sequences, operations and faults the run of the reference model had.
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
    result: &'static str,
    steps: u64,
    faults_fired: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
}

/// The report as one JSON object, whose field `list` has the cases.
pub(super) fn of(report: &Report) -> serde_json::Result<String> {
    let Counts { cases, passed, failed, unsupported, steps, faults_fired } =
        report.counts();
    let list = report.cases.iter().map(|case| of_case(report, case)).collect();
    serde_json::to_string_pretty(&Object {
        backend: report.backend,
        cases,
        passed,
        failed,
        unsupported,
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
    let (result, failure) = match &case.result {
        CaseResult::Passed => ("passed", None),
        CaseResult::Unsupported => ("unsupported", None),
        CaseResult::Failed(words) => ("failed", Some(words.as_str())),
    };
    Case {
        id: &case.id,
        rules: case.rules,
        result,
        steps: case.steps,
        faults_fired: case.faults_fired,
        failure,
        replay: failure.map(|_| report.replay(case)),
    }
}
