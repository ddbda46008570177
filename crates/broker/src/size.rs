//! Splitting a batch so that no request is over the service's limits when encoded.

use crate::error::PublishError;
use std::collections::HashMap;

/// Messages per publish request (<https://cloud.google.com/pubsub/quotas#resource_limits>).
pub const MAX_REQUEST_MESSAGES: usize = 1000;

/// Bytes per publish request. The service takes 10 MB encoded; our figure is an estimate, so a tenth is kept free.
pub const MAX_REQUEST_BYTES: usize = 9_000_000;

/// Bytes of one message with its attributes. More than a request's share on purpose: one message of 9.5 MB still
/// goes out alone.
pub const MAX_MESSAGE_BYTES: usize = 9_900_000;

/// Tag and length prefixes of protobuf around each attribute (entry, key, value: at most 5 bytes each), rounded up.
const FRAME_BYTES: usize = 16;

/// Bytes the message will take in a request, estimated from above; refuses what the service would refuse whatever it
/// is sent with.
pub(crate) fn check(
    attributes: &HashMap<String, String>,
    data: &[u8],
    ordering_key: &str,
) -> Result<usize, PublishError> {
    let refuse = |reason: String| Err(PublishError::Refused { reason });
    if data.is_empty() && attributes.is_empty() {
        return refuse("message has neither data nor attributes".to_owned());
    }
    if attributes.len() > 100 {
        return refuse(format!("{} attributes are over the limit of 100", attributes.len()));
    }
    let mut bytes = data.len() + ordering_key.len() + 2 * FRAME_BYTES;
    for (name, value) in attributes {
        if name.is_empty() || name.len() > 256 {
            return refuse(format!("attribute name `{name}` is empty or over 256 bytes"));
        }
        if value.len() > 1024 {
            return refuse(format!("attribute `{name}` has {} bytes, the limit is 1024", value.len()));
        }
        bytes += name.len() + value.len() + FRAME_BYTES;
    }
    if bytes > MAX_MESSAGE_BYTES {
        return refuse(format!("message of {bytes} bytes is over the limit of {MAX_MESSAGE_BYTES}"));
    }
    Ok(bytes)
}

/// Room left in one request.
#[derive(Default)]
pub(crate) struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// Takes room for one message, unless it does not fit. The first always fits.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.messages < MAX_REQUEST_MESSAGES && self.bytes + bytes <= MAX_REQUEST_BYTES;
        if fits || self.messages == 0 {
            self.messages += 1;
            self.bytes += bytes;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_REQUEST_MESSAGES, Room};

    /// How many of `size` bytes fit one request.
    fn fitting(size: usize) -> usize {
        let mut room = Room::default();
        (0..2000).take_while(|_| room.take(size)).count()
    }

    #[test]
    fn a_request_holds_what_fits() {
        assert_eq!(fitting(1), MAX_REQUEST_MESSAGES);
        // Nine of 950 kB stay under 9 MB, with room for the framing.
        assert_eq!(fitting(950_000), 9);
        // One that is larger than a request's share goes alone.
        assert_eq!(fitting(9_500_000), 1);
    }
}
