use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use crate::sid::shaped;

/// An API key of a Twilio account. Its secret leaves only in the `Authorization` header.
///
/// An API key and not the account's auth token: a key can be revoked alone
/// (<https://www.twilio.com/docs/iam/api-keys>).
#[derive(Clone)]
pub struct Credentials {
    account_sid: String,
    key_sid: String,
    secret: String,
}

impl Credentials {
    /// Account `AC…`, API key `SK…` and its secret.
    pub fn new(
        account_sid: impl Into<String>,
        key_sid: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        Self { account_sid: account_sid.into(), key_sid: key_sid.into(), secret: secret.into() }
    }

    /// The account whose answers are believed; `None` if it is none.
    pub(crate) fn account_sid(&self) -> Option<&str> {
        shaped("AC", &self.account_sid).ok().map(|()| self.account_sid.as_str())
    }

    /// The header that presents the key, marked so that no library prints it either.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        if self.secret.is_empty() || shaped("SK", &self.key_sid).is_err() {
            return None;
        }
        let pair = STANDARD.encode(format!("{}:{}", self.key_sid, self.secret));
        let mut value = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("account_sid", &self.account_sid)
            .field("key_sid", &self.key_sid)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Credentials;

    #[test]
    fn debug_shows_which_key_and_nothing_of_its_secret() {
        let (account, key) = (format!("AC{}", "a".repeat(32)), format!("SK{}", "b".repeat(32)));
        let credentials = Credentials::new(&account, &key, "hunter2");
        let shown = format!("{credentials:?} {:?}", credentials.header());
        assert!(shown.contains(&account) && shown.contains(&key) && shown.contains("Some(Sensitive)"));
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"));
        assert!(Credentials::new(&account, "AC1", "hunter2").header().is_none());
        assert!(Credentials::new("me", &key, "hunter2").account_sid().is_none());
    }
}
