//! A step that failed, on its way to the report.

use std::fmt::Display;
use std::io;

use dayfly_host::jail::{JailReport, JailStep};

/// Which step failed, what it was done to, and what the kernel said.
#[derive(Debug)]
pub(crate) struct Failure {
    step: JailStep,
    detail: String,
    errno: Option<i32>,
}

impl Failure {
    pub(crate) fn new(step: JailStep, detail: impl Display) -> Self {
        Self {
            step,
            detail: detail.to_string(),
            errno: None,
        }
    }

    pub(crate) fn into_report(self) -> JailReport {
        JailReport::Failed {
            step: self.step,
            detail: self.detail,
            errno: self.errno,
        }
    }
}

/// Names the step of a failing call.
pub(crate) trait Step<T> {
    fn step(self, step: JailStep, detail: impl Display) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: JailStep, detail: impl Display) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            let errno = error.raw_os_error();
            // An error of our own making has no number; its text must not get lost.
            let detail = if errno.is_some() {
                detail.to_string()
            } else {
                format!("{detail}: {error}")
            };
            Failure {
                step,
                detail,
                errno,
            }
        })
    }
}
