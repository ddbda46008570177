//! What a measurement says: one line.

use serde::Serialize;

/// What a line is held to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// `ratio` should be this or more.
    AtLeast(f64),
    /// `ratio` should be this or less.
    AtMost(f64),
    /// Shown for orientation.
    None,
}

/// One result.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    pub(super) ceiling: Option<f64>,
    pub(super) ratio: Option<f64>,
    /// Lowest and highest of the runs behind `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spread: Option<(f64, f64)>,
    pub(super) note: String,
    #[serde(skip)]
    pub(super) missed: bool,
}

impl Line {
    pub(super) fn new(name: &str, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            value,
            unit,
            ceiling: None,
            ratio: None,
            spread: None,
            note: String::new(),
            missed: false,
        }
    }

    /// Medians of runs that were taken alternately.
    pub(super) fn against(
        name: &str,
        unit: &'static str,
        ours: &Runs,
        ceiling: &Runs,
        target: Target,
    ) -> Self {
        let mut line = Self::new(name, ours.median(), unit).limit(ceiling.median(), target);
        line.spread = Some(ours.spread());
        let (low, high) = ceiling.spread();
        line.note(&format!("ceiling {} to {}", short(low), short(high)))
    }

    /// Compares with a ceiling or a limit.
    pub(super) fn limit(mut self, ceiling: f64, target: Target) -> Self {
        let ratio = self.value / ceiling;
        let (wanted, met) = match target {
            Target::AtLeast(least) => (format!("target >= {least}"), ratio >= least),
            Target::AtMost(most) => (format!("target <= {most}"), ratio <= most),
            Target::None => (String::new(), true),
        };
        self.ceiling = Some(ceiling);
        self.ratio = Some(ratio);
        self.missed = !met;
        match target {
            Target::None => self,
            _ => self.note(&format!("{wanted}: {}", if met { "met" } else { "MISSED" })),
        }
    }

    /// Shows the figure that the peers' study measured for the same ceiling on two cores.
    pub(super) fn peers(self, figure: f64, what: &str) -> Self {
        let part = self.ceiling.map_or(1.0, |ceiling| {
            // Of rates the ceiling should be as high, of times as low.
            if self.unit == "ms" { figure / ceiling } else { ceiling / figure }
        });
        let doubt = if part < 0.7 { ", ceiling suspect" } else { "" };
        self.note(&format!("peers.md {} ({what}){doubt}", short(figure)))
    }

    pub(super) fn spread(mut self, runs: &Runs) -> Self {
        self.spread = Some(runs.spread());
        self
    }

    pub(super) fn note(mut self, text: &str) -> Self {
        if !self.note.is_empty() && !text.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
        self
    }

    pub(super) fn row(&self) -> [String; 7] {
        [
            self.name.clone(),
            short(self.value),
            self.unit.to_owned(),
            self.ceiling.map(short).unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            self.spread.map(|(low, high)| format!("{}-{}", short(low), short(high))).unwrap_or_default(),
            self.note.clone(),
        ]
    }
}

/// Values of repeated runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs(Vec<f64>);

impl Runs {
    pub(super) fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_unstable_by(f64::total_cmp);
    }

    pub(super) fn median(&self) -> f64 {
        self.part(0.5)
    }

    /// The value below which this part of the values lies.
    pub(super) fn part(&self, part: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return f64::NAN };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index among some thousand values"
        )]
        let at = (last as f64 * part).round() as usize;
        self.0.get(at).copied().unwrap_or(f64::NAN)
    }

    fn spread(&self) -> (f64, f64) {
        (self.part(0.0), self.part(1.0))
    }
}

/// Three significant places are more than two cores can promise.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Runs, Target};

    #[test]
    fn medians_decide_and_a_low_ceiling_is_doubted() {
        let (mut ours, mut ceiling) = (Runs::default(), Runs::default());
        [3.0, 1.0, 200.0].into_iter().for_each(|value| ours.push(value));
        [4.0, 5.0, 6.0].into_iter().for_each(|value| ceiling.push(value));
        let line = Line::against("x", "op/s", &ours, &ceiling, Target::AtLeast(0.65)).peers(10.0, "y");
        assert_eq!((line.value, line.ceiling, line.missed), (3.0, Some(5.0), true));
        assert!(line.note.contains("MISSED") && line.note.contains("ceiling suspect"), "{}", line.note);
    }
}
