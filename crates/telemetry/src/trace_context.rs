//! W3C Trace Context as it is stored: the text of a `traceparent`.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// Where the flags' last digit is: `vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-ff`.
const FLAGS: usize = 54;

/// Whether the producer samples this trace. Looks at one byte, so that nothing is parsed for what is not recorded.
pub(crate) fn sampled(traceparent: &str) -> bool {
    let digit = traceparent.as_bytes().get(FLAGS).and_then(|byte| char::from(*byte).to_digit(16));
    digit.is_some_and(|digit| digit & 1 == 1)
}

/// A context whose spans belong to the stored trace, or `None` when the text is not a trace context.
pub(crate) fn parse(traceparent: &str) -> Option<Context> {
    struct Stored<'a>(&'a str);

    impl Extractor for Stored<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            (key == "traceparent").then_some(self.0)
        }
        fn keys(&self) -> Vec<&str> {
            vec!["traceparent"]
        }
    }

    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Stored(traceparent));
    context.has_active_span().then_some(context)
}

/// The text that carries a span's context on.
pub(crate) fn format(span: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8())
}

#[cfg(test)]
mod tests {
    use super::{format, parse, sampled};
    use opentelemetry::trace::TraceContextExt;

    const STORED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_stored_survives_and_only_the_flag_says_whether_it_is_sampled() {
        let context = parse(STORED);
        assert_eq!(context.map(|context| format(context.span().span_context())).as_deref(), Some(STORED));
        assert!(sampled(STORED) && sampled(&STORED.replace("-01", "-03")));
        for not in ["", "00", &STORED.replace("-01", "-00"), &STORED.replace("-01", "-0x")] {
            assert!(!sampled(not), "{not}");
        }
        assert!(parse("00-nonsense-01").is_none());
    }
}
