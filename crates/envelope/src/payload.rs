//! The payload's JSON text, kept byte for byte.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// JSON text whose bytes survive every hop unchanged.
///
/// `Debug` shows the length only: payloads never reach a log line. As part of another type it is read and written by
/// `serde_json` alone, so that an event's payload can be an operation's input as it is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(Box<RawValue>);

/// The text is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("payload is not valid JSON at line {line}, column {column}")]
pub struct InvalidJson {
    /// Line of the first bad byte, from 1.
    pub line: usize,
    /// Column of the first bad byte, from 1.
    pub column: usize,
}

impl Payload {
    /// Takes JSON text as it is, apart from white space around the outermost value.
    ///
    /// # Errors
    /// Text that is not one JSON value; the error carries the place, never the text.
    pub fn from_json(text: &str) -> Result<Self, InvalidJson> {
        serde_json::from_str(text).map(Self).map_err(place)
    }

    /// As [`Payload::from_json`], without copying the text.
    ///
    /// # Errors
    /// Text that is not one JSON value.
    pub fn from_string(text: String) -> Result<Self, InvalidJson> {
        RawValue::from_string(text).map(Self).map_err(place)
    }

    /// As [`Payload::from_json`], for bytes that should be UTF-8.
    ///
    /// # Errors
    /// Bytes that are not one JSON value in UTF-8.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, InvalidJson> {
        serde_json::from_slice(bytes).map(Self).map_err(place)
    }

    /// Serializes a typed payload; fields keep their declared order.
    ///
    /// # Errors
    /// Types that JSON cannot carry, such as a map with keys that are not text.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        serde_json::value::to_raw_value(value).map(Self).map_err(place)
    }

    /// Reads the payload as `T`.
    ///
    /// # Errors
    /// The text does not have the shape of `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

fn place(error: serde_json::Error) -> InvalidJson {
    InvalidJson { line: error.line(), column: error.column() }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.as_str().len())
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Payload {}
