//! Results as texts for a model, by the rule of `sdk/tools/texts.json`: what Dayfly says comes
//! first, and from the line `stdout:`, `stderr:` or `result:` on everything is output.

use std::collections::BTreeMap;

use dayfly_api::{ExecResult, Omission, RunResult};

use crate::names::{named, one_line, quoted};

const STATE_LOST: &str = "the interpreter was started again, its state is lost";
const NOTHING: &str = "nothing was printed";
const SILENT: &str = "nothing was printed; print what you want to see, or end with an expression";
/// What a result is shown as: the first of these that it has.
const TEXTS: [&str; 5] = [
    "text/plain",
    "text/markdown",
    "application/json",
    "text/latex",
    "text/html",
];
/// The exit code that stands for a timeout, whatever signal ended the command.
const TIMEOUT_EXIT_CODE: i32 = 124;
/// Changed files, and kinds of pictures of one result.
const NAMES_MAX: usize = 20;
/// What a model can look at. Every other kind is a word of the guest's.
pub(crate) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What a text is made of.
#[derive(Debug, Default)]
struct Told {
    said: Vec<String>,
    sections: Vec<Section>,
    nothing: &'static str,
}

/// A part of the output: the line that marks it, its name in what is said of it, its text.
#[derive(Debug)]
struct Section {
    mark: String,
    name: &'static str,
    text: String,
}

impl Told {
    /// What Dayfly says, then the sections, of which long ones keep their two ends.
    fn text(self, bytes_max: usize) -> String {
        let Self {
            said: mut lines,
            sections,
            nothing,
        } = self;
        let total: usize = sections.iter().map(|section| section.text.len()).sum();
        let share = bytes_max / sections.len().max(1);
        let mut shown = Vec::new();
        for Section { mark, name, text } in sections {
            shown.push(mark);
            if total > bytes_max && text.len() > share {
                let (text, bytes) = two_ends(&text, share);
                lines.push(cut(name, bytes));
                shown.push(text);
            } else if !text.is_empty() {
                shown.push(text);
            }
        }
        if shown.is_empty() {
            shown.push(nothing.to_owned());
        }
        lines.append(&mut shown);
        lines.join("\n")
    }
}

/// The text of a command that ended.
pub(crate) fn exec(result: &ExecResult, bytes_max: usize) -> String {
    let sections = streams(&result.stdout, &result.stderr);
    let mut said = vec![how_it_ended(result)];
    said.extend(changed(result.changed_files.as_deref()));
    // Of a command that succeeded the server has no hint but that nothing was printed.
    if !(sections.is_empty() && result.exit_code == 0) {
        said.extend(hinted(result.advice.hint.as_deref()));
    }
    said.extend(left_out(&result.omitted));
    Told {
        said,
        sections,
        nothing: NOTHING,
    }
    .text(bytes_max)
}

fn how_it_ended(result: &ExecResult) -> String {
    let seconds = seconds(result.duration_ms);
    let text = format!("exit code {}, {seconds}", result.exit_code);
    match (result.reason.as_str(), result.signal) {
        ("timeout" | "timed_out", _) => format!(
            "timeout after {seconds}, the command was ended (exit code {TIMEOUT_EXIT_CODE})"
        ),
        ("signaled", Some(signal)) => format!("{text}, ended by signal {signal}"),
        ("limit_exceeded", _) => {
            let limits: Vec<String> = result.limits_hit.iter().map(|name| named(name)).collect();
            format!("{text}, limit exceeded: {}", limits.join(", "))
        }
        ("exited" | "signaled", _) => text,
        (reason, _) => {
            format!("{text}, {}", named(reason).replace('_', " "))
        }
    }
}

/// The text of code that ended.
pub(crate) fn code(result: &RunResult, bytes_max: usize) -> String {
    let mut stderr = result.stderr.clone();
    if !result.traceback.is_empty() {
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(&result.traceback.join("\n"));
    }
    let mut sections = streams(&result.stdout, &stderr);
    sections.extend(result.results.iter().filter_map(displayed));
    let is_ok = result.status == "ok";
    let mut said = vec![how_code_ended(result)];
    said.extend(changed(result.changed_files.as_deref()));
    if result.state_lost {
        said.extend(hinted(result.advice.hint.as_deref().or(Some(STATE_LOST))));
    } else if !is_ok {
        said.extend(hinted(result.advice.hint.as_deref()));
    }
    said.extend(left_out(&result.omitted));
    Told {
        said,
        sections,
        nothing: if is_ok { SILENT } else { NOTHING },
    }
    .text(bytes_max)
}

fn how_code_ended(result: &RunResult) -> String {
    let seconds = seconds(result.duration_ms);
    match (result.status.as_str(), &result.error) {
        ("timed_out", _) => format!("timeout after {seconds}, the code was interrupted"),
        ("interrupted", _) => format!("interrupted after {seconds}"),
        ("died", _) => format!("the interpreter ended after {seconds}, its state is lost"),
        (_, Some(error)) => {
            let name = error.split(':').next().unwrap_or_default();
            format!("error {}, {seconds}", named(name))
        }
        (status, None) => format!("{}, {seconds}", named(status)),
    }
}

/// Cut to tenths, never rounded up.
fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

fn changed(files: Option<&[String]>) -> Option<String> {
    let files = files.filter(|files| !files.is_empty())?;
    let names = files.iter().take(NAMES_MAX).map(|name| named(name));
    Some(format!("changed files: {}", listed(names, files.len())))
}

/// The names that there is room for, and how many there are beside them.
fn listed(names: impl Iterator<Item = String>, count: usize) -> String {
    let names: Vec<String> = names.collect();
    let more = count - names.len();
    let names = names.join(", ");
    if more == 0 {
        return names;
    }
    format!("{names} and {more} more")
}

fn hinted(hint: Option<&str>) -> Option<String> {
    hint.map(|hint| format!("hint: {}", one_line(hint)))
}

/// What the server left out of each stream already.
fn left_out(omitted: &[Omission]) -> Vec<String> {
    ["stdout", "stderr"]
        .into_iter()
        .filter_map(|name| {
            let parts = omitted.iter().filter(|part| part.stream == name);
            let bytes: u64 = parts.map(|part| part.bytes).sum();
            (bytes > 0).then(|| cut(name, bytes))
        })
        .collect()
}

fn cut(name: &str, bytes: u64) -> String {
    format!("cut: {bytes} bytes of {name} are left out")
}

fn streams(stdout: &str, stderr: &str) -> Vec<Section> {
    [("stdout", stdout), ("stderr", stderr)]
        .into_iter()
        .map(|(name, text)| Section {
            mark: format!("{name}:"),
            name,
            text: text.trim_end_matches('\n').to_owned(),
        })
        .filter(|section| !section.text.is_empty())
        .collect()
}

/// What a result shows, and that there are pictures of it.
fn displayed(result: &BTreeMap<String, String>) -> Option<Section> {
    let pictures = result.keys().filter(|kind| kind.starts_with("image/"));
    let pictures: Vec<&String> = pictures.collect();
    let text = TEXTS.iter().find_map(|kind| result.get(*kind));
    let text = text.map_or("", |text| text.trim_end_matches('\n'));
    let mut mark = "result".to_owned();
    if !pictures.is_empty() {
        let kinds = pictures.iter().take(NAMES_MAX).map(|kind| picture(kind));
        mark.push_str(&format!(" (with {})", listed(kinds, pictures.len())));
    }
    if !text.is_empty() {
        mark.push(':');
    }
    let is_shown = !text.is_empty() || !pictures.is_empty();
    is_shown.then(|| Section {
        mark,
        name: "a result",
        text: text.to_owned(),
    })
}

fn picture(kind: &str) -> String {
    if IMAGES.contains(&kind) {
        return kind.to_owned();
    }
    quoted(kind)
}

/// The beginning and the end of a text, with a mark in between, and how much is left out.
fn two_ends(text: &str, bytes_max: usize) -> (String, u64) {
    let tail_bytes = bytes_max / 2;
    let head = text.floor_char_boundary(bytes_max - tail_bytes);
    let tail = text.ceil_char_boundary(text.len() - tail_bytes.min(text.len()));
    let (before, after) = (&text[..head], &text[tail.max(head)..]);
    let bytes = (text.len() - before.len() - after.len()) as u64;
    let gap = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let mark = format!("{gap}[... {bytes} bytes left out, from offset {head} ...]\n");
    (format!("{before}{mark}{after}"), bytes)
}

#[cfg(test)]
mod tests {
    use dayfly_types::limits::MCP_TEXT_BYTES_MAX;
    use serde_json::{Value, json};

    use super::*;

    fn cases() -> Value {
        serde_json::from_str(include_str!("../../../sdk/tools/texts.json")).unwrap()
    }

    /// A result as the server would give it, of the fields that a case has.
    fn exec_of(case: &Value) -> ExecResult {
        let mut whole = json!({"truncated": false, "exec_id": "e"});
        let mut fields = case.as_object().unwrap().clone();
        let omitted = fields.get_mut("omitted").and_then(Value::as_array_mut);
        for part in omitted.into_iter().flatten() {
            part["readable"] = true.into();
        }
        whole.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(whole).unwrap()
    }

    fn code_of(case: &Value) -> RunResult {
        let mut whole = json!({"truncated": false, "exit": 0, "exit_code": 0});
        let mut fields = case.as_object().unwrap().clone();
        if let Some(error) = fields.get("error").cloned() {
            let (name, value) = (error["name"].as_str(), error["value"].as_str());
            let line = match value.unwrap() {
                "" => name.unwrap().to_owned(),
                value => format!("{}: {value}", name.unwrap()),
            };
            fields.insert("error".to_owned(), line.into());
        }
        whole.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(whole).unwrap()
    }

    fn room_of(case: &Value) -> usize {
        let room = case["max_bytes"].as_u64();
        room.map_or(MCP_TEXT_BYTES_MAX, |room| usize::try_from(room).unwrap())
    }

    #[test]
    fn results_read_as_in_every_client() {
        let cases = cases();
        assert_eq!(cases["default_max_bytes"], MCP_TEXT_BYTES_MAX);
        for case in cases["cases"].as_array().unwrap() {
            let text = match (case.get("exec"), case.get("code")) {
                (Some(result), None) => exec(&exec_of(result), room_of(case)),
                (None, Some(result)) => code(&code_of(result), room_of(case)),
                _ => panic!("a case of a kind that is not known: {case}"),
            };
            assert_eq!(text, case["text"], "{}", case["name"]);
        }
    }

    #[test]
    fn a_traceback_is_in_the_text_once() {
        let result = code_of(&json!({"status": "error", "duration_ms": 1, "stdout": "",
            "stderr": "", "error": {"name": "NameError", "value": "x"}, "results": [],
            "traceback": ["Traceback (most recent call last):", "NameError: x"]}));
        let text = code(&result, MCP_TEXT_BYTES_MAX);
        assert_eq!(
            text,
            "error NameError, 0.0 s\nstderr:\nTraceback (most recent call last):\nNameError: x"
        );
    }

    #[test]
    fn every_cut_is_between_characters() {
        for length in [81, 82, 200, 5000] {
            let text = "aé".repeat(length);
            for room in 0..160 {
                let (cut, bytes) = two_ends(&text, room);
                assert!(cut.contains(&format!("[... {bytes} bytes left out")));
                assert!(cut.len() <= room + 80, "{length} {room}");
            }
        }
    }
}
