use backline_failure::{Call, Failure};
use backline_provider_http::BodyLost;
use http::Method;
use http::header::AUTHORIZATION;
use serde::de::DeserializeOwned;
use url::Url;

use crate::failure_table::{Asked, Fact, Refusal, refusal, unreadable};
use crate::reply::Reply;
use crate::{OPERATION_HEADER, Twilio};

/// What Twilio definitely said.
pub(crate) enum Said {
    /// 2xx, with a body that nobody has looked at.
    Yes(Reply),
    /// It is already so; the request did nothing.
    Already(Fact, Reply),
}

impl Reply {
    /// The body as what was asked for. The caller still checks that it speaks of what was asked.
    pub(crate) fn parse<T: DeserializeOwned>(&self, asked: Asked) -> Result<T, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| unreadable(self, asked, "twilio.unreadable_answer", &error.to_string()))
    }
}

impl Twilio {
    pub(crate) async fn get(&self, call: &Call, url: Url) -> Result<Said, Failure> {
        let answer = self.transport.read(call, self.request(call, Method::GET, url)).await?;
        self.heeded(call, self.judge(answer, Asked::Read)).await
    }

    pub(crate) async fn post(&self, call: &Call, url: Url, form: String) -> Result<Said, Failure> {
        let answer = self.transport.write(call, self.request(call, Method::POST, url), form).await?;
        self.heeded(call, self.judge(answer, Asked::Write)).await
    }

    pub(crate) async fn delete(&self, call: &Call, url: Url) -> Result<Said, Failure> {
        let answer = self.transport.delete(call, self.request(call, Method::DELETE, url)).await?;
        self.heeded(call, self.judge(answer, Asked::Write)).await
    }

    /// What asks for less is heeded before the caller hears of it.
    async fn heeded(&self, call: &Call, judged: Result<Said, Failure>) -> Result<Said, Failure> {
        if let Err(failure) = &judged {
            call.heed(failure).await;
        }
        judged
    }

    /// `v1/Conversations` and these segments below it, each encoded as one segment whatever it holds.
    pub(crate) fn url(&self, segments: &[&str]) -> Result<Url, Failure> {
        let mut url = self.transport.base_url().clone();
        match url.path_segments_mut() {
            Ok(mut path) => {
                path.pop_if_empty().extend(["v1", "Conversations"]).extend(segments);
            }
            Err(()) => {
                return Err(
                    Failure::poison("twilio.invalid_request").with_detail("the base URL takes no path")
                );
            }
        }
        Ok(url)
    }

    fn request(&self, call: &Call, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.transport
            .request(call, method, url)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(OPERATION_HEADER, call.operation_id.to_string())
    }

    fn judge(&self, answer: backline_provider_http::Answer, asked: Asked) -> Result<Said, Failure> {
        let mut reply = Reply::from_head(&answer);
        if let Some(concurrent) = reply.concurrent_requests {
            // The account's limit is not published; where it begins to refuse can only be watched.
            metrics::gauge!("backline_twilio_concurrent_requests").set(f64::from(concurrent));
        }
        match answer.body {
            Ok(body) => reply.body = body,
            // The head of the answer arrived, so its facts are kept with the loss.
            Err(lost) => {
                let name = match lost {
                    BodyLost::TooLarge => "twilio.answer_too_large",
                    BodyLost::Cut(_) => "twilio.answer_lost",
                };
                return Err(unreadable(&reply, asked, name, &lost.to_string()));
            }
        }
        if (200..300).contains(&reply.status) {
            return Ok(Said::Yes(reply));
        }
        match refusal(&reply, asked) {
            Refusal::Fact(fact) => Ok(Said::Already(fact, reply)),
            Refusal::Failed(failure) => Err(failure),
        }
    }
}

/// Nothing was sent, and no attempt with these inputs ever will be.
pub(crate) fn invalid(detail: impl AsRef<str>) -> Failure {
    Failure::rejected("twilio.invalid_instruction").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use backline_provider_http::Answer;
    use http::{HeaderMap, HeaderValue};
    use metrics_exporter_prometheus::PrometheusBuilder;

    use crate::failure_table::Asked;
    use crate::{Config, Credentials, Twilio};

    #[test]
    fn the_accounts_concurrency_is_observed_on_every_answer() -> Result<(), Box<dyn std::error::Error>> {
        // Another test of this process may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (account, key) = (format!("AC{}", "0".repeat(32)), format!("SK{}", "0".repeat(32)));
        let twilio = Twilio::new(Config {
            credentials: Credentials::new(account, key, "secret"),
            base_url: Config::LIVE_URL.parse()?,
            connect_timeout: Config::CONNECT_TIMEOUT,
        })?;
        let recorder = PrometheusBuilder::new().build_recorder();
        let page = recorder.handle();
        for (status, concurrent) in [(200, "3"), (429, "87")] {
            let headers = HeaderMap::from_iter([(
                "twilio-concurrent-requests".parse()?,
                HeaderValue::from_static(concurrent),
            )]);
            let answer = Answer { status, headers, body: Ok(bytes::Bytes::new()) };
            let judged = metrics::with_local_recorder(&recorder, || twilio.judge(answer, Asked::Read));
            assert_eq!(judged.is_ok(), status == 200);
            let line = format!("backline_twilio_concurrent_requests {concurrent}");
            assert!(page.render().contains(&line), "{}", page.render());
        }
        Ok(())
    }
}
