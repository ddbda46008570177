//! Names and HTTP counterparts of gRPC codes:
//! <https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto>.

use tonic::Code;

const CODES: [(&str, Code, u16); 17] = [
    ("OK", Code::Ok, 200),
    ("CANCELLED", Code::Cancelled, 499),
    ("UNKNOWN", Code::Unknown, 500),
    ("INVALID_ARGUMENT", Code::InvalidArgument, 400),
    ("DEADLINE_EXCEEDED", Code::DeadlineExceeded, 504),
    ("NOT_FOUND", Code::NotFound, 404),
    ("ALREADY_EXISTS", Code::AlreadyExists, 409),
    ("PERMISSION_DENIED", Code::PermissionDenied, 403),
    ("RESOURCE_EXHAUSTED", Code::ResourceExhausted, 429),
    ("FAILED_PRECONDITION", Code::FailedPrecondition, 400),
    ("ABORTED", Code::Aborted, 409),
    ("OUT_OF_RANGE", Code::OutOfRange, 400),
    ("UNIMPLEMENTED", Code::Unimplemented, 501),
    ("INTERNAL", Code::Internal, 500),
    ("UNAVAILABLE", Code::Unavailable, 503),
    ("DATA_LOSS", Code::DataLoss, 500),
    ("UNAUTHENTICATED", Code::Unauthenticated, 401),
];

/// The code of a protocol name.
pub(crate) fn code_of(name: &str) -> Option<Code> {
    CODES.iter().find(|(known, ..)| *known == name).map(|(_, code, _)| *code)
}

/// Protocol name and HTTP status of a code.
pub(crate) fn http_of(code: Code) -> (&'static str, u16) {
    CODES
        .iter()
        .find(|(_, known, _)| *known == code)
        .map_or(("UNKNOWN", 500), |(name, _, http)| (*name, *http))
}
