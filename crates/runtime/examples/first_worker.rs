//! A complete worker: approved letters become files, one per submission. `docs/writing-a-worker.md` explains it.
//!
//! The "provider" is a directory. A file is named after the submission's key and put in place by an atomic rename, so
//! a repetition of the same submission replaces the file by the same bytes.

use backline_envelope::{DecodeError, Envelope, Event, decode};
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_runtime::{
    Command, Conclusion, Consumer, Error, Evidence, Intent, KindSpec, Operation, Record, Workload,
    WorkloadConfig,
};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What the application said. The text is frozen here: changing the letter later does not change this one.
#[derive(Serialize, Deserialize)]
struct LetterApproved {
    letter_id: String,
    text: String,
}

impl Event for LetterApproved {
    const TYPE: &'static str = "LetterApproved";
    const VERSION: i32 = 1;
}

/// What this worker says when it is done.
#[derive(Serialize, Deserialize)]
struct LetterPrinted {
    letter_id: String,
    file: String,
}

impl Event for LetterPrinted {
    const TYPE: &'static str = "LetterPrinted";
    const VERSION: i32 = 1;
}

/// From events to operations. No I/O, and the same answer every time.
struct Letters;

impl Consumer for Letters {
    const NAME: &'static str = "letters";
    const EVENTS: &'static [&'static str] = &[LetterApproved::TYPE];

    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        let letter: LetterApproved = decode(event)?;
        // The application's own id is the operation's name: approving one letter twice prints it once.
        Ok(vec![Intent::run(event, Printer::owed(&letter.letter_id, &letter))?])
    }
}

/// Handler of `letters.print`: its one client, here a directory.
struct Printer {
    tray: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Printed {
    file: String,
}

impl Printer {
    fn file(&self, call: &Call) -> PathBuf {
        self.tray.join(format!("{}.txt", call.key))
    }
}

impl Command for Printer {
    const KIND: &'static str = "letters.print";
    const GUARDS: bool = false;
    type Input = LetterApproved;
    type Output = Printed;

    fn spec(&self) -> KindSpec {
        KindSpec {
            request_timeout: Duration::from_secs(5),
            // A local file system neither holds requests back nor hides what it has.
            linger: Duration::ZERO,
            lookup_lag: Duration::ZERO,
            // Files are kept for a week here; within it the same key cannot make a second one.
            ..KindSpec::new(Mode::Command, "printer:tray")
                .with_native_idempotency(Duration::from_secs(7 * 24 * 3600))
        }
    }

    async fn perform(&self, call: &Call, letter: &LetterApproved) -> Result<Printed, Failure> {
        let file = self.file(call);
        let draft = self.tray.join(format!("{}.draft", call.key));
        if call.deadline.passed() {
            return Err(Failure::transient("printer.too_late"));
        }
        // A draft is not yet an effect: what fails up to here is simply tried again.
        tokio::fs::write(&draft, &letter.text)
            .await
            .map_err(|error| Failure::transient("printer.tray_unwritable").with_detail(error.to_string()))?;
        call.mark_may_have_left();
        match tokio::fs::rename(&draft, &file).await {
            Ok(()) => Ok(Printed { file: file.display().to_string() }),
            // After the mark nobody may guess: the runtime repeats the same submission, or asks resolve.
            Err(error) => Err(Failure::unknown("printer.rename").with_detail(error.to_string())),
        }
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        _letter: &LetterApproved,
        _evidence: &[Evidence],
    ) -> Result<Resolution<Printed>, Failure> {
        let file = self.file(call);
        match tokio::fs::try_exists(&file).await {
            Ok(true) => Ok(Resolution::Applied(Printed { file: file.display().to_string() })),
            Ok(false) => Ok(Resolution::NotApplied),
            Err(_) => Ok(Resolution::StillUnknown),
        }
    }

    async fn record(
        &self,
        record: &mut Record<'_>,
        letter: &LetterApproved,
        end: Conclusion<'_, Printed>,
    ) -> Result<(), Error> {
        let Conclusion::Succeeded(printed) = end else { return Ok(()) };
        let fact = LetterPrinted { letter_id: letter.letter_id.clone(), file: printed.file.clone() };
        record.emit("printed", "letter", &letter.letter_id, None, &fact).await?;
        Ok(())
    }
}

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    workload: WorkloadConfig,
    /// Where printed letters go.
    #[arg(long, env = "LETTERS_TRAY")]
    tray: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let settings = Settings::parse();
    let exit = Workload::process("letters", settings.workload)?
        .command(Printer { tray: settings.tray })
        .consumer(Letters)
        .run()
        .await?;
    Ok(exit.code())
}
