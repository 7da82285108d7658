//! A webhook that the export is sent to, signed.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dayfly_client::Webhook;
use ring::hmac;

use crate::failure::CommandError;

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;

pub(super) struct SignedWebhook {
    webhook: Webhook,
    key: hmac::Key,
}

impl SignedWebhook {
    pub(super) fn new(url: &str, secret: Option<&Path>) -> Result<Self, CommandError> {
        let secret = secret.ok_or_else(|| CommandError::Usage {
            what: "nothing says which secret signs what is sent".to_owned(),
            hint: "give --secret-file FILE",
        })?;
        let failed = |source| {
            CommandError::local(
                format!("cannot use the secret in {}", secret.display()),
                source,
            )
        };
        let text = std::fs::read(secret).map_err(failed)?;
        let text = text.trim_ascii();
        if text.len() < SECRET_BYTES_MIN {
            let what = format!("it is shorter than {SECRET_BYTES_MIN} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        Ok(Self {
            webhook: Webhook::new(url).map_err(|error| {
                CommandError::local("cannot use the webhook", io::Error::other(error))
            })?,
            key: hmac::Key::new(hmac::HMAC_SHA256, text),
        })
    }

    pub(super) async fn deliver(&self, lines: &[u8]) -> Result<(), CommandError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let headers = [
            ("content-type", "application/x-ndjson"),
            ("dayfly-signature", &signature(&self.key, now, lines)),
        ];
        let body = lines.to_vec().into();
        let delivered = self.webhook.deliver(&headers, body).await;
        delivered.map_err(|error| {
            CommandError::local("the webhook did not take it", io::Error::other(error))
        })
    }
}

/// `t` is when it was signed, `v1` the HMAC with SHA-256 of that time, a dot and the body.
fn signature(key: &hmac::Key, now: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{now}.").as_bytes());
    context.update(body);
    let tag = context.sign();
    let hex: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("t={now},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf '1700000000.{}\n' | openssl dgst -sha256 -hmac 0123456789abcdef` says.
    #[test]
    fn a_signature_is_what_others_compute() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef");
        assert_eq!(
            signature(&key, 1_700_000_000, b"{}\n"),
            "t=1700000000,v1=9762b6da9e539b8a12f2592a576916bb7d0e48ef60ccbf1c013f9b7158f9344f"
        );
    }
}
