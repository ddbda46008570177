use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a SID of the kind asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SID: `{prefix}` and 32 hexadecimal digits")]
pub struct BadSid {
    prefix: &'static str,
}

/// Two capital letters and 32 hexadecimal digits, as in every schema of Twilio's.
pub(crate) fn shaped(prefix: &'static str, text: &str) -> Result<(), BadSid> {
    let digits = text.strip_prefix(prefix).ok_or(BadSid { prefix })?;
    if digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(())
    } else {
        Err(BadSid { prefix })
    }
}

macro_rules! sid {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text, as it goes into a path.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadSid;

            fn try_from(text: String) -> Result<Self, BadSid> {
                shaped($prefix, &text)?;
                Ok(Self(text))
            }
        }

        impl FromStr for $name {
            type Err = BadSid;

            fn from_str(text: &str) -> Result<Self, BadSid> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(sid: $name) -> Self {
                sid.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

sid! {
    /// `CH…`: what must outlive a conversation's row, because nothing else deletes it at Twilio.
    ConversationSid, "CH"
}

sid! {
    /// `MB…`: one membership. A participant who leaves and comes back has another, so removing by SID can never remove
    /// a later membership.
    ParticipantSid, "MB"
}

#[cfg(test)]
mod tests {
    use super::ConversationSid;

    #[test]
    fn only_sids_of_the_kind_are_taken() {
        let good = "CH0123456789abcdefABCDEF0123456789";
        assert_eq!(good.parse::<ConversationSid>().map(String::from).as_deref(), Ok(good));
        for bad in
            ["", "CH", "MB0123456789abcdefABCDEF0123456789", "CH0123456789abcdefABCDEF012345678/", "CH../x"]
        {
            assert!(bad.parse::<ConversationSid>().is_err(), "{bad}");
            assert!(serde_json::from_value::<ConversationSid>(serde_json::json!(bad)).is_err(), "{bad}");
        }
    }
}
