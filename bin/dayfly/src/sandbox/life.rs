//! `dayfly top --since`: what sandboxes used over their lives.

use dayfly_api::{Sandbox, SandboxSample};
use dayfly_client::{ClientError, ProjectChoice, SandboxFilter, UsageSpan};
use dayfly_types::ErrorCode;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::args::TopArgs;
use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::sandbox::amounts::{kibibytes, mebibytes, percent};
use crate::sandbox::prefixes;
use crate::table::Table;
use crate::{exit_status, moments};

/// What one sandbox used between its first and its last sample of a span.
struct Life {
    sandbox: Sandbox,
    samples: usize,
    /// Of one CPU. A mean counts the time asleep between two samples.
    cpu_percent_mean: Option<f64>,
    cpu_percent_max: Option<f64>,
    memory_bytes_mean: Option<u64>,
    memory_bytes_max: Option<u64>,
    disk_bytes_max: Option<u64>,
    network_in_bytes: u64,
    network_out_bytes: u64,
}

/// Shows the samples of one sandbox, or sums up those of all.
pub(crate) async fn show(
    session: &Session<'_>,
    args: &TopArgs,
    since: &OffsetDateTime,
) -> Result<u8, CommandError> {
    let since = moments::rfc3339(since);
    match &args.sandbox {
        Some(given) => show_one(session, args, given, since).await?,
        None => show_all(session, args, since).await?,
    }
    Ok(exit_status::OK)
}

async fn show_one(
    session: &Session<'_>,
    args: &TopArgs,
    given: &str,
    since: String,
) -> Result<(), CommandError> {
    let id = match &args.whose.project {
        // Only the own ones can be found by the beginning of their ids.
        Some(_) => given.to_owned(),
        None => prefixes::resolve(&session.client, given).await?,
    };
    let read = read(session, &id, since, args.whose.choice()).await;
    let samples = read.map_err(|source| unread(&id, source))?;
    let printer = session.printer;
    if printer.is_json() {
        return printer.json(&samples);
    }
    let mut table = Table::new(&["TIME", "CPU", "OWN MEMORY", "DISK", "IN", "OUT"]);
    for (number, sample) in samples.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| samples.get(before));
        let more = |of: fn(&SandboxSample) -> u64| {
            let before = before.map_or_else(|| of(sample), of);
            of(sample).saturating_sub(before)
        };
        table.push(vec![
            sample.at.clone(),
            percent(before.and_then(|before| load(before, sample))),
            mebibytes(Some(sample.memory_bytes)),
            mebibytes(Some(sample.disk_bytes)),
            kibibytes(more(|it| it.network_in_bytes)),
            kibibytes(more(|it| it.network_out_bytes)),
        ]);
    }
    printer.table(&table)?;
    if samples.is_empty() {
        printer.note("there are no samples of that time");
    }
    Ok(())
}

async fn show_all(
    session: &Session<'_>,
    args: &TopArgs,
    since: String,
) -> Result<(), CommandError> {
    let filter = SandboxFilter {
        projects: args.whose.choice(),
        ..SandboxFilter::default()
    };
    let listed = session.client.find_sandboxes(&filter).await;
    let sandboxes = listed.map_err(|source| CommandError::call("cannot list sandboxes", source))?;
    let mut lives = Vec::new();
    for sandbox in sandboxes {
        let projects = match &sandbox.project {
            Some(project) => ProjectChoice::One(project.clone()),
            None => args.whose.choice(),
        };
        let read = read(session, &sandbox.id, since.clone(), projects).await;
        match read {
            Ok(samples) => lives.push(life(sandbox, &samples)),
            // It went while the others were read.
            Err(error) if error.api_code() == Some(ErrorCode::NotFound) => {}
            Err(source) => return Err(unread(&sandbox.id, source)),
        }
    }
    lives.sort_by(|a, b| {
        let cpu = |it: &Life| it.cpu_percent_mean.unwrap_or(-1.0);
        cpu(b).total_cmp(&cpu(a))
    });
    let printer = session.printer;
    if printer.is_json() {
        let items: Vec<_> = lives.iter().map(object).collect();
        return printer.json(&items);
    }
    printer.table(&table(&lives))
}

async fn read(
    session: &Session<'_>,
    id: &str,
    since: String,
    projects: ProjectChoice,
) -> Result<Vec<SandboxSample>, ClientError> {
    let span = UsageSpan {
        since: Some(since),
        until: None,
        projects,
    };
    session.client.sandbox_metrics(id, &span).await
}

fn unread(id: &str, source: ClientError) -> CommandError {
    CommandError::call(format!("cannot read the metrics of {id}"), source)
}

fn life(sandbox: Sandbox, samples: &[SandboxSample]) -> Life {
    let loads = samples.windows(2).filter_map(|two| load(&two[0], &two[1]));
    let ends = samples.first().zip(samples.last());
    let more = |of: fn(&SandboxSample) -> u64| {
        ends.map_or(0, |(first, last)| of(last).saturating_sub(of(first)))
    };
    let memory = || samples.iter().map(|sample| sample.memory_bytes);
    Life {
        sandbox,
        samples: samples.len(),
        cpu_percent_mean: ends.and_then(|(first, last)| load(first, last)),
        cpu_percent_max: loads.max_by(f64::total_cmp),
        memory_bytes_mean: memory().sum::<u64>().checked_div(samples.len() as u64),
        memory_bytes_max: memory().max(),
        disk_bytes_max: samples.iter().map(|sample| sample.disk_bytes).max(),
        network_in_bytes: more(|it| it.network_in_bytes),
        network_out_bytes: more(|it| it.network_out_bytes),
    }
}

/// CPU time between two samples, in hundredths of the time between them.
fn load(before: &SandboxSample, after: &SandboxSample) -> Option<f64> {
    let moment = |sample: &SandboxSample| moments::of_server(&sample.at);
    let elapsed = (moment(after)? - moment(before)?).as_seconds_f64();
    let used = after.cpu_us.checked_sub(before.cpu_us)?;
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    let percent = used as f64 / 10_000.0 / elapsed;
    (elapsed > 0.0).then_some(percent)
}

fn table(lives: &[Life]) -> Table {
    let mut table = Table::new(&[
        "ID",
        "STATUS",
        "CPU",
        "CPU MAX",
        "OWN MEMORY",
        "MEMORY MAX",
        "DISK MAX",
        "IN",
        "OUT",
    ]);
    for life in lives {
        table.push(vec![
            life.sandbox.id.clone(),
            life.sandbox.status.clone(),
            percent(life.cpu_percent_mean),
            percent(life.cpu_percent_max),
            mebibytes(life.memory_bytes_mean),
            mebibytes(life.memory_bytes_max),
            mebibytes(life.disk_bytes_max),
            kibibytes(life.network_in_bytes),
            kibibytes(life.network_out_bytes),
        ]);
    }
    if lives.iter().any(|life| life.sandbox.project.is_some()) {
        table.lead_with_projects(lives.iter().map(|life| &life.sandbox.project));
    }
    table
}

/// One line of the table, for programs.
fn object(life: &Life) -> Value {
    let mut object = json!({
        "id": life.sandbox.id,
        "template": life.sandbox.template,
        "status": life.sandbox.status,
        "samples": life.samples,
        "cpu_percent_mean": life.cpu_percent_mean,
        "cpu_percent_max": life.cpu_percent_max,
        "memory_bytes_mean": life.memory_bytes_mean,
        "memory_bytes_max": life.memory_bytes_max,
        "disk_bytes_max": life.disk_bytes_max,
        "network_in_bytes": life.network_in_bytes,
        "network_out_bytes": life.network_out_bytes,
    });
    if let Some(project) = &life.sandbox.project {
        object["project"] = project.as_str().into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_time_of_a_cpu_between_two_samples() {
        let sample = |at: &str, cpu_us: u64| SandboxSample {
            at: at.to_owned(),
            cpu_us,
            memory_bytes: 0,
            disk_bytes: 0,
            network_in_bytes: 0,
            network_out_bytes: 0,
        };
        let before = sample("2026-01-01T00:00:00Z", 1_000_000);
        let after = sample("2026-01-01T00:00:10Z", 3_500_000);
        assert_eq!(load(&before, &after), Some(25.0));
        assert_eq!(load(&after, &before), None);
        assert_eq!(load(&before, &before), None);
    }
}
