//! One line of the doctor's answer.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Ok,
    /// Works, and somebody should look.
    Warn,
    /// Does not work.
    Fail,
}

#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) level: Level,
    /// What was found.
    pub(super) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warn(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, level: Level::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, level: Level::Fail, found: found.into(), advice: Some(advice.into()) }
    }

    /// Ok below `warn`, a warning below `fail`, a failure from there.
    pub(super) fn age(
        name: &'static str,
        seconds: f64,
        (warn, fail): (f64, f64),
        found: String,
        advice: &str,
    ) -> Self {
        match seconds {
            _ if seconds < warn => Self::ok(name, found),
            _ if seconds < fail => Self::warn(name, found, advice),
            _ => Self::fail(name, found, advice),
        }
    }

    /// Gives better advice than the check alone could; one that found nothing wrong needs none.
    pub(super) fn advise(&mut self, advice: &str) {
        if self.level != Level::Ok {
            self.advice = Some(advice.to_owned());
        }
    }

    pub(super) fn line(&self) -> String {
        let level = match self.level {
            Level::Ok => "ok  ",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        match &self.advice {
            Some(advice) => format!("{level}  {}: {}\n      do: {advice}", self.name, self.found),
            None => format!("{level}  {}: {}", self.name, self.found),
        }
    }
}
