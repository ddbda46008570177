use std::time::{Duration, SystemTime};

use backline_failure::parse_retry_after;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

/// The largest body read. A page of 100 of the largest objects is a few hundred kilobytes; more is not an API talking.
const BODY_LIMIT: usize = 1024 * 1024;

/// An answer whose head arrived, with its body if that did.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers as they came.
    pub headers: HeaderMap,
    /// The whole body, at most 1 MiB.
    pub body: Result<Bytes, BodyLost>,
}

/// Why a body is missing although its head arrived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyLost {
    /// It was not read to its end.
    #[error("more than 1 MiB")]
    TooLarge,
    /// The connection or the time ended inside it; says how.
    #[error("{0}")]
    Cut(String),
}

impl Answer {
    pub(crate) async fn read(mut response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        Self { status, headers, body: read_body(response).await }
    }

    /// The text of a header, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }

    /// `Retry-After`: seconds, or until a date by the clock that wrote it. Ours may be wrong, so a date without `Date`
    /// is nothing.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.header("retry-after")?;
        let by_date = value.contains(':');
        let now = self.header("date").and_then(|date| httpdate::parse_http_date(&date).ok());
        match now {
            None if by_date => None,
            now => parse_retry_after(&value, now.unwrap_or(SystemTime::UNIX_EPOCH)),
        }
    }
}

async fn read_body(mut response: reqwest::Response) -> Result<Bytes, BodyLost> {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => return Err(BodyLost::TooLarge),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(Bytes::from(body)),
            Err(error) => return Err(BodyLost::Cut(chain(&error))),
        }
    }
}

/// The causes of a transport error, without its URL, whose query may name a customer.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue};

    use super::Answer;

    #[test]
    fn a_wait_is_relative_to_the_clock_that_wrote_it() {
        let wait = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            Answer { status: 429, headers: map, body: Ok(bytes::Bytes::new()) }.retry_after()
        };
        const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let before = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(wait(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("retry-after", AT), before]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[("retry-after", AT)]), None);
        assert_eq!(wait(&[]), None);
    }
}
