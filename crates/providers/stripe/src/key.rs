use std::fmt;

use http::HeaderValue;

/// A Stripe secret or restricted key. Its text leaves only in the `Authorization` header.
#[derive(Clone)]
pub struct ApiKey(HeaderValue);

/// Why a text is no key of ours. It is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Empty, or with characters that no header carries.
    #[error("is empty or has characters that no key has")]
    Unusable,
    /// For browsers and apps: Stripe would refuse each call.
    #[error(
        "is a publishable key (pk_), which may not move money: a secret (sk_) or restricted key (rk_) is needed"
    )]
    Publishable,
}

impl ApiKey {
    /// Takes the key's text.
    ///
    /// # Errors
    /// It cannot be the platform's key.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Unusable);
        }
        if text.starts_with("pk_") {
            return Err(KeyError::Publishable);
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| KeyError::Unusable)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    /// The header that presents it, marked so that no library prints it either.
    pub(crate) fn header(self) -> HeaderValue {
        self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiKey, KeyError};

    #[test]
    fn debug_shows_nothing_of_the_key() -> Result<(), KeyError> {
        let key = ApiKey::new("sk_live_abc")?;
        assert_eq!(format!("{key:?}"), "ApiKey(redacted)");
        assert_eq!(format!("{:?}", key.header()), "Sensitive");
        Ok(())
    }

    #[test]
    fn what_cannot_be_a_key_of_the_platform_is_refused_and_not_quoted() {
        for (text, why) in [
            ("pk_live_abc", KeyError::Publishable),
            ("pk_test_abc", KeyError::Publishable),
            ("", KeyError::Unusable),
            ("sk_live_abc\n", KeyError::Unusable),
        ] {
            let refused = ApiKey::new(text).err();
            assert_eq!(refused, Some(why));
            assert!(refused.is_some_and(|error| !error.to_string().contains("abc")));
        }
        assert!(ApiKey::new("rk_live_abc").is_ok());
    }
}
