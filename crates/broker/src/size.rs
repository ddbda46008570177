//! Splitting a batch so that no request is over the service's limits when encoded.

use crate::error::PublishError;
use crate::publish::Outgoing;
use std::ops::Range;

/// Messages per publish request (<https://cloud.google.com/pubsub/quotas#resource_limits>).
pub const MAX_REQUEST_MESSAGES: usize = 1000;

/// Bytes per publish request. The service takes 10 MB encoded; our figure is an estimate, so a tenth is kept free.
pub const MAX_REQUEST_BYTES: usize = 9_000_000;

/// Bytes of one message with its attributes. More than a request's share on purpose: one message of 9.5 MB still
/// goes out alone.
pub const MAX_MESSAGE_BYTES: usize = 9_900_000;

/// Tag and length prefixes of protobuf around each attribute (entry, key, value: at most 5 bytes each), rounded up.
const FRAME_BYTES: usize = 16;

/// Bytes the message will take in a request, estimated from above.
pub(crate) fn encoded_bytes(outgoing: &Outgoing, ordering_key: &str) -> usize {
    let attributes: usize =
        outgoing.attributes.iter().map(|(name, value)| name.len() + value.len() + FRAME_BYTES).sum();
    outgoing.data.len() + ordering_key.len() + attributes + 2 * FRAME_BYTES
}

/// What the service would refuse whatever it is sent with.
pub(crate) fn check(outgoing: &Outgoing, ordering_key: &str) -> Result<(), PublishError> {
    let refuse = |reason: String| Err(PublishError::Refused { reason });
    let bytes = encoded_bytes(outgoing, ordering_key);
    if bytes > MAX_MESSAGE_BYTES {
        return refuse(format!("message of {bytes} bytes is over the limit of {MAX_MESSAGE_BYTES}"));
    }
    if outgoing.data.is_empty() && outgoing.attributes.is_empty() {
        return refuse("message has neither data nor attributes".to_owned());
    }
    if outgoing.attributes.len() > 100 {
        return refuse(format!("{} attributes are over the limit of 100", outgoing.attributes.len()));
    }
    for (name, value) in &outgoing.attributes {
        if name.is_empty() || name.len() > 256 || name.starts_with("goog") && !name.starts_with("googclient_")
        {
            return refuse(format!("attribute name `{name}` is empty, reserved or over 256 bytes"));
        }
        if value.len() > 1024 {
            return refuse(format!("attribute `{name}` has {} bytes, the limit is 1024", value.len()));
        }
    }
    Ok(())
}

/// Longest runs of entries that fit one request each.
pub(crate) fn chunks(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, size) in sizes.iter().enumerate() {
        if at > start && (at - start == MAX_REQUEST_MESSAGES || bytes + size > MAX_REQUEST_BYTES) {
            out.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += size;
    }
    if start < sizes.len() {
        out.push(start..sizes.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{MAX_REQUEST_MESSAGES, chunks};

    #[test]
    fn a_request_holds_what_fits() {
        assert!(chunks(&[]).is_empty());
        assert_eq!(chunks(&[1; MAX_REQUEST_MESSAGES + 1]), [0..1000, 1000..1001]);
        // Twelve of 900 kB: nine fit under 9 MB, with room for the framing.
        assert_eq!(chunks(&[950_000; 12]), [0..9, 9..12]);
        // One that is larger than a request's share goes alone.
        assert_eq!(chunks(&[10, 9_500_000, 10]), [0..1, 1..2, 2..3]);
    }
}
