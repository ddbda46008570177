//! The span of one request, by <https://opentelemetry.io/docs/specs/semconv/http/http-spans/>.
//!
//! `url.full` is left out although the convention wants it: paths and queries name customers.

use crate::Provider;
use crate::answer::{Answer, BodyLost};
use backline_failure::{Call, Failure};
use backline_telemetry::{KeyValue, Recording, SpanBuilder, SpanKind, child};
use http::HeaderValue;
use url::Url;

/// Starts the request's span below the call's trace context, and lets the request carry it on; what is not recorded
/// carries on the call's own.
pub(crate) fn begin(provider: &Provider, call: &Call, request: &mut reqwest::Request) -> Option<Recording> {
    let span = child(call.traceparent.as_deref(), || {
        let (method, url) = (request.method().to_string(), request.url());
        let template = template(provider, url);
        SpanBuilder::from_name(format!("{method} {template}")).with_kind(SpanKind::Client).with_attributes([
            KeyValue::new("http.request.method", method),
            KeyValue::new("url.template", template),
            KeyValue::new("server.address", url.host_str().unwrap_or_default().to_owned()),
            KeyValue::new("server.port", i64::from(url.port_or_known_default().unwrap_or_default())),
        ])
    });
    let trace = span.as_ref().map(Recording::traceparent).or_else(|| call.traceparent.clone());
    if let Some(value) = trace.and_then(|text| HeaderValue::from_str(&text).ok()) {
        request.headers_mut().insert("traceparent", value);
    }
    span
}

/// Notes the answer, or what became of it.
pub(crate) fn end(span: Option<Recording>, outcome: &Result<Answer, Failure>) {
    let Some(span) = span else { return };
    match outcome {
        Ok(answer) => {
            span.set("http.response.status_code", i64::from(answer.status));
            match &answer.body {
                Err(BodyLost::TooLarge) => span.failed("answer_too_large"),
                Err(BodyLost::Cut(_)) => span.failed("answer_lost"),
                // A client's span counts every refusal as an error.
                Ok(_) if answer.status >= 400 => span.failed(answer.status.to_string()),
                Ok(_) => {}
            }
        }
        Err(failure) => span.failed(failure.code.as_ref()),
    }
}

/// The path with `{id}` for every segment that is not one of the provider's words, so that a path that nobody thought
/// of shows too little and not a customer.
fn template(provider: &Provider, url: &Url) -> String {
    let segments = url.path_segments().into_iter().flatten();
    let shown = segments.map(|segment| if provider.words.contains(&segment) { segment } else { "{id}" });
    shown.fold(String::new(), |path, segment| path + "/" + segment)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::template;
    use crate::Provider;

    #[test]
    fn a_template_names_nobody() -> Result<(), url::ParseError> {
        let provider =
            Provider { name: "p", before: "p.before", after: "p.after", words: &["v1", "transfers"] };
        let shown = |url: &str| Url::parse(url).map(|url| template(&provider, &url));
        assert_eq!(shown("https://p/v1/transfers?email=a%40b")?, "/v1/transfers");
        assert_eq!(shown("https://p/v1/transfers/tr_1/reversals/jane")?, "/v1/transfers/{id}/{id}/{id}");
        Ok(())
    }
}
