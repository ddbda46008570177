use std::fmt;

use http::HeaderValue;

/// A Stripe secret or restricted key. Its text leaves only in the `Authorization` header.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps the key's text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The header that presents it, marked so that no library prints it either.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::ApiKey;

    #[test]
    fn debug_shows_nothing_of_the_key() {
        let key = ApiKey::new("sk_live_abc");
        assert_eq!(format!("{key:?} {:?}", key.header()), "ApiKey(redacted) Some(Sensitive)");
    }
}
