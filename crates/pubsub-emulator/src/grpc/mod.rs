//! Google's gRPC services. The generated types come without server traits, so calls are routed by path.

mod publisher;
mod reset;
mod streaming;
mod subscriber;
pub(crate) use subscriber::{acknowledge, modify_deadline, pull};
mod verdict;

use crate::broker::Broker;
use crate::limits::REQUEST_BYTES;
use axum::body::Body;
use prost::Message;
use std::future::Future;
use std::sync::Arc;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

type HttpRequest = http::Request<Body>;
type HttpResponse = http::Response<tonic::body::Body>;

/// Answers one gRPC call.
pub(crate) async fn serve(broker: Arc<Broker>, request: HttpRequest) -> http::Response<Body> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let response = match path.split_once('/') {
        Some(("google.pubsub.v1.Publisher", method)) => publisher::serve(broker, method, request).await,
        Some(("google.pubsub.v1.Subscriber", method)) => subscriber::serve(broker, method, request).await,
        _ => unimplemented(&path),
    };
    reset::resettable(response)
}

fn unimplemented(path: &str) -> HttpResponse {
    Status::unimplemented(format!("{path} is not part of the emulator")).into_http()
}

/// Answers a call of one request and one response.
async fn unary<Req, Res, F>(request: HttpRequest, call: impl FnOnce(Req) -> F + Clone) -> HttpResponse
where
    Req: Message + Default + Send + 'static,
    Res: Message + Default + Send + 'static,
    F: Future<Output = Result<Res, Status>> + Send + 'static,
{
    let service = tower::service_fn(move |request: Request<Req>| {
        let answer = (call.clone())(request.into_inner());
        async move { answer.await.map(Response::new) }
    });
    grpc::<Req, Res>().unary(service, request).await
}

fn grpc<Req, Res>() -> Grpc<ProstCodec<Res, Req>>
where
    Req: Message + Default + Send + 'static,
    Res: Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(REQUEST_BYTES)
}
