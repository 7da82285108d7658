//! Events of a build as the API tells them: the same that `dayfly template build --json` prints.

use dayfly_api::{FailedBuildStep, TemplateBuildEvent};
use dayfly_build::{BuildEvent, FailedStep};

pub(crate) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

pub(crate) fn event(event: BuildEvent) -> TemplateBuildEvent {
    match event {
        BuildEvent::Base {
            image,
            percent,
            detail,
        } => TemplateBuildEvent::Base {
            image,
            percent,
            detail,
        },
        BuildEvent::Stage { name, steps } => TemplateBuildEvent::Stage {
            name,
            steps: number(steps),
        },
        BuildEvent::Cached {
            number: place,
            steps,
            text,
        } => TemplateBuildEvent::Cached {
            number: number(place),
            steps: number(steps),
            text,
        },
        BuildEvent::Started {
            number: place,
            steps,
            text,
        } => TemplateBuildEvent::Started {
            number: number(place),
            steps: number(steps),
            text,
        },
        BuildEvent::Output { text, is_error } => TemplateBuildEvent::Output { text, is_error },
        BuildEvent::Finished {
            number: place,
            elapsed,
        } => TemplateBuildEvent::Finished {
            number: number(place),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        },
        BuildEvent::Baking { percent, detail } => TemplateBuildEvent::Baking { percent, detail },
    }
}

pub(crate) fn failed_step(step: FailedStep) -> FailedBuildStep {
    FailedBuildStep {
        number: number(step.number),
        steps: number(step.steps),
        line: number(step.line),
        text: step.text,
        exit_code: step.exit_code,
        tail: step.tail,
        sandbox: step.sandbox,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_api_tells_what_the_command_prints() {
        let text = || "RUN x".to_owned();
        for told in [
            BuildEvent::Base {
                image: text(),
                percent: 3,
                detail: None,
            },
            BuildEvent::Stage {
                name: text(),
                steps: 2,
            },
            BuildEvent::Cached {
                number: 1,
                steps: 2,
                text: text(),
            },
            BuildEvent::Started {
                number: 2,
                steps: 2,
                text: text(),
            },
            BuildEvent::Output {
                text: text(),
                is_error: true,
            },
            BuildEvent::Finished {
                number: 2,
                elapsed: Duration::from_millis(1500),
            },
            BuildEvent::Baking {
                percent: 4,
                detail: Some(text()),
            },
        ] {
            let printed = serde_json::to_value(&told).unwrap();
            assert_eq!(serde_json::to_value(event(told)).unwrap(), printed);
        }
    }
}
