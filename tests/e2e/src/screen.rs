//! A real terminal: tmux, with a server of its own.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::wait::until;

const SESSION: &str = "dayfly";

/// A terminal with a program in it. Dropping it ends both.
#[derive(Debug)]
pub struct Screen {
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Screen {
    /// Starts a program in a terminal of 80 by 24.
    ///
    /// # Errors
    /// When tmux cannot be run.
    pub async fn start(program: &[String], environment: &[(String, String)]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let screen = Self {
            socket: directory.path().join("tmux.sock"),
            _directory: directory,
        };
        let mut words: Vec<String> = ["new-session", "-d", "-s", SESSION, "-x", "80", "-y", "24"]
            .map(str::to_owned)
            .to_vec();
        for (name, value) in environment {
            words.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        words.extend(program.iter().cloned());
        screen.tmux(&words).await?;
        // What the program printed last stays to be looked at.
        let keep = ["set-option", "-t", SESSION, "remain-on-exit", "on"].map(str::to_owned);
        screen.tmux(&keep).await?;
        Ok(screen)
    }

    async fn tmux(&self, words: &[String]) -> Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .await
            .context("cannot run tmux")?;
        if !output.status.success() {
            bail!(
                "tmux {words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Types keys, by the names that tmux has for them.
    ///
    /// # Errors
    /// When tmux fails.
    pub async fn keys(&self, keys: &[&str]) -> Result<()> {
        let mut words = ["send-keys", "-t", SESSION].map(str::to_owned).to_vec();
        words.extend(keys.iter().map(|key| (*key).to_owned()));
        self.tmux(&words).await.map(drop)
    }

    /// Makes the terminal another size.
    ///
    /// # Errors
    /// When tmux fails.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let words = [
            "resize-window",
            "-t",
            SESSION,
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ];
        self.tmux(&words.map(str::to_owned)).await.map(drop)
    }

    /// What is on the screen.
    ///
    /// # Errors
    /// When tmux fails.
    pub async fn text(&self) -> Result<String> {
        let words = ["capture-pane", "-p", "-t", SESSION].map(str::to_owned);
        self.tmux(&words).await
    }

    /// Waits until the screen shows what is wanted.
    ///
    /// # Errors
    /// When it does not in time; the screen is in the text.
    pub async fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> Result<String> {
        let found = until(what, Duration::from_secs(30), async || {
            let text = self.text().await.ok()?;
            is_there(&text).then_some(text)
        })
        .await;
        self.with_screen(found).await
    }

    /// Whether the program ends within a time.
    pub async fn has_ended(&self, limit: Duration) -> bool {
        self.status_within(limit).await.is_ok()
    }

    /// Waits for the end of the program; gives its exit status.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn exit_status(&self) -> Result<i32> {
        let ended = self.status_within(Duration::from_secs(30)).await;
        self.with_screen(ended).await
    }

    async fn status_within(&self, limit: Duration) -> Result<i32> {
        let format = "#{pane_dead} #{pane_dead_status} signal=#{pane_dead_signal}";
        let words = ["display-message", "-p", "-t", SESSION, format].map(str::to_owned);
        let ending = until("the program ends", limit, async || {
            let answer = self.tmux(&words).await.ok()?;
            let ending = answer.trim().strip_prefix("1 ")?.to_owned();
            Some(ending)
        });
        let ending = ending.await?;
        let status = ending
            .split_whitespace()
            .next()
            .and_then(|text| text.parse().ok());
        status.with_context(|| format!("the program did not end by itself: {ending}"))
    }

    /// Adds what is on the screen to an error.
    async fn with_screen<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => {
                let text = self.text().await.unwrap_or_default();
                Err(error.context(format!("the screen shows:\n{text}")))
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = std::process::Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .stderr(Stdio::null())
            .status();
    }
}
