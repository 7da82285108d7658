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
    /// Where the program's exit status is written when it has ended.
    status: PathBuf,
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
            status: directory.path().join("status"),
            _directory: directory,
        };
        let mut words: Vec<String> = ["new-session", "-d", "-s", SESSION, "-x", "80", "-y", "24"]
            .map(str::to_owned)
            .to_vec();
        for (name, value) in environment {
            words.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        // By a shell of ours: tmux 3.3 knows now and then that a program is dead and not how.
        let status = screen.status.display().to_string();
        words.extend(["sh", "-c", "\"$@\"; echo $? >\"$0\"", &status].map(str::to_owned));
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

    /// Waits for the end of the program; gives its exit status.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn exit_status(&self) -> Result<i32> {
        let ended = until("the program ends", Duration::from_secs(30), async || {
            let text = std::fs::read_to_string(&self.status).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
        .await;
        self.with_screen(ended).await
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
