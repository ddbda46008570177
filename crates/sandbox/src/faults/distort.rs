//! What a caller gets to see of a true reply, whichever provider's it is.

use bytes::Bytes;

use super::{BadText, Fault};
use crate::reply::{Delivery, Reply};

/// How a provider wraps the text of an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) before: &'static [u8],
    pub(crate) after: &'static [u8],
}

impl Envelope {
    fn around(self, text: &[u8]) -> Bytes {
        Bytes::from([self.before, text, self.after].concat())
    }
}

/// The answer of a fault that replaces it without an effect.
pub(crate) fn instead(fault: &Fault, envelope: Envelope) -> Option<Reply> {
    match fault {
        Fault::DropBefore => Some(Reply::dropped()),
        Fault::Garbage { applied: false, .. }
        | Fault::Html { applied: false, .. }
        | Fault::HugeError { applied: false, .. }
        | Fault::BadText { applied: false, .. } => Some(distort(fault, Reply::json(200, "{}"), envelope)),
        _ => None,
    }
}

/// The true reply, as far as the fault lets it through.
pub(crate) fn distort(fault: &Fault, truth: Reply, envelope: Envelope) -> Reply {
    let lie = |status: u16, content_type: &'static str, body: Bytes| Reply {
        status,
        content_type,
        body,
        ..truth.clone()
    };
    let error = |status: u16, text: &[u8]| lie(status, "application/json", envelope.around(text));
    match fault {
        Fault::DropReply | Fault::Late { .. } => Reply::dropped(),
        Fault::Garbage { status, .. } => {
            lie(*status, "application/json", Bytes::from_static(b"\x1f\x8b\x08 not json at all"))
        }
        Fault::Truncated => {
            let half = truth.body.slice(..truth.body.len() / 2);
            lie(truth.status, "application/json", half)
        }
        Fault::Html { status, .. } => {
            let page = "<html><head><title>Bad gateway</title></head><body>upstream</body></html>";
            lie(*status, "text/html", Bytes::from_static(page.as_bytes()))
        }
        Fault::HugeError { status, bytes, .. } => error(*status, "x".repeat(*bytes).as_bytes()),
        Fault::BadText { text, status, .. } => match text {
            BadText::Nul => error(*status, br"before\u0000after"),
            BadText::LoneSurrogate => error(*status, br"before\ud83d after"),
            // The first two of the four bytes of U+1F600.
            BadText::EmojiCut => error(*status, b"cut \xf0\x9f"),
        },
        Fault::Drip { chunk, every } => {
            Reply { delivery: Delivery::Drip { chunk: *chunk, every: *every }, ..truth }
        }
        Fault::Reset { after_bytes } => {
            Reply { delivery: Delivery::Reset { after_bytes: *after_bytes }, ..truth }
        }
        _ => truth,
    }
}
