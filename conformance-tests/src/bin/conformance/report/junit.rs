//! The report as JUnit XML, which CI servers display.

use relq_conformance::report::{CaseResult, Judged, Report};

/// The report as a JUnit `testsuite`.
pub(super) fn of(report: &Report) -> String {
    let counts = report.counts();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" \
         tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        report.backend, counts.cases, counts.failed, counts.unsupported
    );
    report.cases.iter().for_each(|case| xml.push_str(&of_case(report, case)));
    xml + "</testsuite>\n"
}

fn of_case(report: &Report, case: &Judged) -> String {
    let name = escaped(case.id.rsplit("::").next().unwrap_or(&case.id));
    let inside = match &case.result {
        CaseResult::Passed => String::new(),
        CaseResult::Unsupported => "<skipped message=\"not supported\"/>".to_owned(),
        CaseResult::Failed(words) => {
            let words = format!("{words}\n{}", report.replay(case));
            format!("<failure>{}</failure>", escaped(&words))
        }
    };
    let topic = escaped(case.topic());
    format!("<testcase classname=\"{topic}\" name=\"{name}\">{inside}</testcase>\n")
}

fn escaped(text: &str) -> String {
    let may_stand = |c: &char| !c.is_control() || *c == '\n';
    text.chars().filter(may_stand).fold(String::new(), |mut xml, c| {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            other => xml.push(other),
        }
        xml
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_syntax_is_escaped() {
        assert_eq!(escaped("a < \"b\" & \u{1b}[0m>\n"), {
            "a &lt; &quot;b&quot; &amp; [0m&gt;\n"
        });
    }
}
