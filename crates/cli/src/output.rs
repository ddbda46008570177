//! What people and programs get to see.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use serde_json::json;
use std::io::{IsTerminal, Write};

/// Where answers go: text for people, or one JSON document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Writes `value` as JSON or `text` for people.
    pub(crate) fn answer(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json {
            write_out(&serde_json::to_string_pretty(value)?);
        } else {
            write_out(text().trim_end());
        }
        Ok(())
    }

    /// A line on the way to the answer; not part of a JSON document.
    pub(crate) fn say(&self, line: &str) {
        if !self.json {
            write_out(line);
        }
    }

    /// A remark beside the answer, on standard error.
    pub(crate) fn say_aside(&self, line: &str) {
        // Nothing to do when even this cannot be written.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// The reason why there is no answer.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        if self.json {
            write_out(&json!({"error": format!("{error:#}")}).to_string());
        } else {
            // Nothing to do when even this cannot be written; the exit code tells.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
        }
    }
}

/// A reader that went away (`| head`) is not our failure.
fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Rows under headings: aligned on a terminal, separated by tabs elsewhere.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    if !std::io::stdout().is_terminal() {
        let lines = rows.into_iter().map(|row| row.join("\t"));
        return std::iter::once(headings.join("\t")).chain(lines).collect::<Vec<_>>().join("\n");
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| heading.to_uppercase()));
    table.add_rows(rows);
    table.trim_fmt()
}

/// A span of seconds in at most two units, such as `2h 5m`; people compare ages, not milliseconds.
pub(crate) fn span(seconds: f64) -> String {
    let size = seconds.abs();
    let (first, unit, second, smaller) = match size {
        _ if size < 1.0 => return format!("{:.0}ms", seconds * 1000.0),
        _ if size < 120.0 => return format!("{seconds:.1}s"),
        _ if size < 7200.0 => ((size / 60.0).floor(), "m", size % 60.0, "s"),
        _ if size < 172_800.0 => ((size / 3600.0).floor(), "h", (size % 3600.0) / 60.0, "m"),
        _ => ((size / 86_400.0).floor(), "d", (size % 86_400.0) / 3600.0, "h"),
    };
    let sign = if seconds < 0.0 { "-" } else { "" };
    format!("{sign}{first:.0}{unit} {:.0}{smaller}", second.floor())
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_read_naturally() {
        let seen = [0.25, 2.0, 119.9, 125.0, 7500.0, 200_000.0, -125.0].map(span);
        assert_eq!(seen, ["250ms", "2.0s", "119.9s", "2m 5s", "2h 5m", "2d 7h", "-2m 5s"]);
    }
}
