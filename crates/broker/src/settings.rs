//! The two settings that say where the broker is, checked in one place for every program.
//!
//! An empty `PUBSUB_EMULATOR_HOST` is refused and not taken for "unset": a variable that was lost on its way would
//! otherwise turn a test into a publication at the real service.

/// A setting that cannot work; the text names it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{setting}: {reason}")]
pub struct SettingError {
    /// Name of the environment variable.
    pub setting: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

fn bad(setting: &'static str, reason: impl Into<String>) -> SettingError {
    SettingError { setting, reason: reason.into() }
}

/// Reads a project id, as in `PUBSUB_PROJECT_ID`. For command lines: `value_parser = backline_broker::project_id`.
///
/// # Errors
/// Empty, or with characters that no project id has and that would change the resource names built from it.
pub fn project_id(text: &str) -> Result<String, SettingError> {
    let setting = "PUBSUB_PROJECT_ID";
    if text.is_empty() {
        return Err(bad(setting, "is empty: give the project, or unset it for the default"));
    }
    // Emulators take any text; domain-scoped projects have a colon and dots.
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    match text.chars().find(|c| !fits(*c)) {
        Some(c) => Err(bad(setting, format!("{text:?} is no project id: {c:?} does not belong there"))),
        None => Ok(text.to_owned()),
    }
}

/// Reads the address of an emulator, as in `PUBSUB_EMULATOR_HOST`: `host:port`.
///
/// # Errors
/// Empty, with a scheme or a path, or without a port.
pub fn emulator_host(text: &str) -> Result<String, SettingError> {
    let setting = "PUBSUB_EMULATOR_HOST";
    if text.is_empty() {
        return Err(bad(setting, "is empty: give host:port, or unset it for the real service"));
    }
    if text.contains("://") {
        return Err(bad(setting, format!("{text:?} has a scheme: give host:port alone")));
    }
    let (host, port) =
        text.rsplit_once(':').ok_or_else(|| bad(setting, format!("{text:?} has no port: give host:port")))?;
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(bad(setting, format!("{text:?}: {port:?} is no port")));
    }
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let fits = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        }
    };
    if fits { Ok(text.to_owned()) } else { Err(bad(setting, format!("{text:?}: {host:?} is no host"))) }
}

#[cfg(test)]
mod tests {
    use super::{emulator_host, project_id};

    #[test]
    fn what_cannot_be_a_project_is_refused_by_name() {
        for good in ["backline", "my-project-4711", "example.com:billing"] {
            assert_eq!(project_id(good), Ok(good.to_owned()));
        }
        for bad in ["", " ", "projects/x", "a b", "x\n"] {
            let refusal = project_id(bad).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refusal.starts_with("PUBSUB_PROJECT_ID: "), "{bad:?}: {refusal}");
        }
    }

    #[test]
    fn what_cannot_be_an_emulator_is_refused_by_name() {
        for good in ["127.0.0.1:8085", "pubsub:8085", "[::1]:8085", "host_1.example:1"] {
            assert_eq!(emulator_host(good), Ok(good.to_owned()));
        }
        for bad in ["", "pubsub", "http://pubsub:8085", ":8085", "pubsub:", "pubsub:0", "a/b:1", "::1:8085"] {
            let refusal = emulator_host(bad).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refusal.starts_with("PUBSUB_EMULATOR_HOST: "), "{bad:?}: {refusal}");
        }
    }
}
