//! The report for a person.

use super::{Report, Verdict};

pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let mark = match check.verdict {
            Verdict::Ok => "ok     ",
            Verdict::Warning => "warning",
            Verdict::Failed => "FAILED ",
        };
        text.push_str(&format!("{mark}  {:<14} {}\n", check.name, check.detail));
        if let Some(hint) = &check.hint {
            text.push_str(&format!("         {:<14} hint: {hint}\n", ""));
        }
    }
    for finding in &report.production {
        let (severity, name) = (finding.severity.as_str(), finding.name);
        text.push_str(&format!("{severity:<7}  {name:<14} {}\n", finding.detail));
        text.push_str(&format!("         {:<14} do: {}\n", "", finding.remedy));
    }
    for item in &report.leftovers {
        text.push_str(&format!("left over: {item:?}\n"));
    }
    let isolation = report
        .isolation
        .map_or("not known yet", |isolation| isolation.as_str());
    text.push_str(&format!("isolation: {isolation}\n"));
    let verdict = if report.fit {
        "this host can run sandboxes"
    } else {
        "this host is not fit"
    };
    text.push_str(verdict);
    let count = report.production.len();
    if count > 0 {
        text.push_str(&format!("; {count} things are not fit for production"));
    }
    text
}
