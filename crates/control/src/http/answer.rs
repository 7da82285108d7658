//! Which refusals a route can answer with, for the document.

use std::collections::BTreeMap;

use dayfly_api::{Advice, ErrorBody, HintCode};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder, Schema};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = [$($status:literal),*];)*) => {
        $($(#[$doc])* pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                BTreeMap::from([$(($status.to_string(), RefOr::T(refusal($status))),)*])
            }
        })*
    };
}

refusals! {
    HealthRefusals = [503];
    /// A question that is answered from the server's own memory.
    ReadRefusals = [401, 403, 429, 500, 503];
    /// A question about one object of the server.
    FindRefusals = [401, 403, 404, 429, 500, 503];
    /// A question to the node.
    NodeRefusals = [401, 403, 429, 500, 503];
    /// A question to the node about one object.
    NodeFindRefusals = [401, 403, 404, 429, 500, 503];
    /// A question to the node about a project.
    NodeProjectRefusals = [400, 401, 403, 404, 429, 500, 503];
    /// A question to the node with something to choose by.
    NodeSearchRefusals = [400, 401, 403, 429, 500, 503];
    CreateRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503, 504, 507];
    DeleteRefusals = [401, 403, 404, 429, 500, 502, 503];
    ExecRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503, 504, 507];
    /// A question about one exec, or its end.
    ProcessRefusals = [400, 401, 403, 404, 409, 429, 500, 502, 503, 504, 507];
    /// Also where contexts are asked for that the template does not have.
    ContextRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 501, 502, 503, 504, 507];
    ContextReadRefusals = [400, 401, 403, 404, 409, 429, 500, 501, 502, 503, 504, 507];
    SocketRefusals = [400, 401, 403, 404, 409, 429, 500, 502, 503, 504, 507];
    FileRefusals = [400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504, 507];
    FileReadRefusals = [400, 401, 403, 404, 409, 413, 416, 429, 500, 502, 503, 504, 507];
    /// Something done to a file, with options.
    FileChangeRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503, 504, 507];
    /// Another state of a sandbox, without options.
    StateRefusals = [401, 403, 404, 409, 429, 500, 502, 503, 504, 507];
    /// Another state of a sandbox, a snapshot, a fork, or a volume, with options.
    ChangeRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503, 504, 507];
    /// A build, where nothing may run one.
    BuildRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 501, 503, 504, 507];
    /// A fork, whose children may be refused for what they would reach.
    ForkRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503, 504, 507];
    /// A default of the project.
    DefaultRefusals = [400, 401, 403, 413, 415, 429, 500, 503];
    /// The record of what a sandbox tried to reach.
    NetworkLogRefusals = [400, 401, 403, 404, 429, 500, 503];
    /// A question with something to choose by, such as a project, answered from the server's own
    /// memory.
    SearchRefusals = [400, 401, 403, 404, 429, 500, 503];
    /// Somebody who signs in.
    SignInRefusals = [400, 401, 403, 404, 413, 415, 429, 500, 503];
    /// The end of a key.
    RevokeRefusals = [400, 401, 403, 404, 429, 500, 503];
    /// The end of a project.
    ProjectEndRefusals = [400, 401, 403, 404, 409, 429, 500, 502, 503];
    /// A key or a project.
    TokenRefusals = [400, 401, 403, 404, 409, 413, 415, 429, 500, 503];
    /// The end of a snapshot or a volume.
    RemoveRefusals = [401, 403, 404, 409, 429, 500, 502, 503];
    FileWriteRefusals = [400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504, 507];
}

pub(crate) fn refusal(status: u16) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name(ErrorBody::name()));
    let response = ResponseBuilder::new()
        .description(meaning(status))
        .content("application/json", Content::new(Some(schema)));
    if !matches!(status, 429 | 503) {
        return response.build();
    }
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(60));
    let header = HeaderBuilder::new()
        .schema(Some(seconds))
        .description(Some(
            "Seconds after which it is worth asking again, when that is known.",
        ))
        .build();
    response.header("Retry-After", header).build()
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request does not fit the documented shape.",
        401 => "No key, or a key that is not known.",
        403 => "Not permitted; the text says why.",
        404 => "No such object in this project.",
        409 => "The object is in a state that does not allow this.",
        413 => "A body, a file or a list is over its limit.",
        415 => "The body is not of the documented media type.",
        416 => "The file has none of the bytes that were asked for; `Content-Range` says its size.",
        429 => "Too many at once. Nothing was done.",
        501 => "Not built yet, or not in this template. Nothing was done.",
        502 => "The guest stopped responding.",
        503 => {
            "No capacity, template not ready, node not reachable, or the database takes no writes."
        }
        504 => "A timeout passed; the text contains `timeout`.",
        507 => "The disk of the guest, or of its host, is full.",
        _ => "A fault of the server.",
    }
}

/// Makes sure that the envelope, and what no field has for its type, are among the document's
/// schemas.
pub(crate) fn envelope_schemas() -> [(String, RefOr<Schema>); 3] {
    [
        (ErrorBody::name().into_owned(), ErrorBody::schema()),
        (Advice::name().into_owned(), Advice::schema()),
        (HintCode::name().into_owned(), HintCode::schema()),
    ]
}
