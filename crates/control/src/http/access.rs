//! Which scope each route needs.
//!
//! The decision looks at the method and the path alone, before anything is looked up: a key
//! without the scope gets the same answer for what exists and for what does not.

use dayfly_types::SandboxId;
use http::{Method, Uri};

use super::auth::OPEN_PATHS;
use super::mcp_http;
use super::parameter::decode;
use crate::tenancy::scope::{FileReach, Reach, Scope};
use crate::tenancy::sign_in_http;

/// What the query of a file is, without anything else.
pub(crate) const FILE_QUERY: &str = "path=";

/// Why a key may not be used for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It lacks this scope.
    Scope(Scope),
    /// It is for another sandbox. The one that was asked for might as well not be there.
    OtherSandbox(SandboxId),
    /// It is for one sandbox, and this is about more.
    OnlyOneSandbox,
    /// It is for one file, and this is about something else.
    OnlyOneFile,
    /// Nothing is known of such a request.
    NoSuchRoute,
}

/// Whether a key of this reach may be used for a request.
pub(crate) fn check(reach: &Reach, method: &Method, address: &Uri) -> Result<(), Denied> {
    match &reach.file {
        Some(file) => check_file(reach.sandbox.as_ref(), file, method, address),
        None => check_path(reach, method, address.path()),
    }
}

fn check_path(reach: &Reach, method: &Method, path: &str) -> Result<(), Denied> {
    let needed = needed(method, path).ok_or(Denied::NoSuchRoute)?;
    if let Some(only) = &reach.sandbox
        && !is_for_everybody(path)
    {
        match sandbox_of(path) {
            Some(id) if id == only.as_str() && !is_about_others(path) => {}
            Some(id) if id == only.as_str() => return Err(Denied::OnlyOneSandbox),
            Some(id) => {
                let id = SandboxId::parse(id).map_err(|_| Denied::OnlyOneSandbox)?;
                return Err(Denied::OtherSandbox(id));
            }
            None => return Err(Denied::OnlyOneSandbox),
        }
    }
    if reach.scopes.has(needed) {
        Ok(())
    } else {
        Err(Denied::Scope(needed))
    }
}

/// Whether a key that is for one file of one sandbox may be used for a request: for that one, as it
/// was made, with no other option.
fn check_file(
    only: Option<&SandboxId>,
    file: &FileReach,
    method: &Method,
    address: &Uri,
) -> Result<(), Denied> {
    let asked = address
        .query()
        .and_then(|query| query.strip_prefix(FILE_QUERY));
    // One parameter and no second: a name may hold the sign that would begin one.
    let asked = asked.filter(|path| !path.contains('&')).and_then(decode);
    let is_it = *method == file.operation.method()
        && is_file_path(address.path())
        && only.is_some_and(|only| sandbox_of(address.path()) == Some(only.as_str()))
        && asked.as_deref() == Some(file.path.as_str());
    if is_it {
        Ok(())
    } else {
        Err(Denied::OnlyOneFile)
    }
}

/// Whether a path is that of a sandbox's files.
pub(crate) fn is_file_path(path: &str) -> bool {
    let rest = path.strip_prefix("/v1/sandboxes/");
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(_, rest)| rest == "fs")
}

fn is_for_everybody(path: &str) -> bool {
    matches!(path, "/v1/me" | "/v1/openapi.json" | mcp_http::PATH)
}

fn sandbox_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/v1/sandboxes/")?;
    rest.split('/').next().filter(|id| !id.is_empty())
}

/// The scope that a request needs; `None` for what is not named here, which nobody may ask for.
pub(crate) fn needed(method: &Method, path: &str) -> Option<Scope> {
    // Anybody may read these, and nobody anything else; the router says so.
    if OPEN_PATHS.contains(&path) {
        return Some(Scope::Read);
    }
    // What is done through it is asked of the API again, with the same key.
    if path == mcp_http::PATH {
        return Some(Scope::Read);
    }
    if path == sign_in_http::PATH {
        return Some(Scope::Read);
    }
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let fourth = parts.next();
    Some(match (first, second, third) {
        ("me", Some("tokens"), _) => Scope::Admin,
        ("me" | "openapi.json" | "network-presets" | "events" | "usage", None, None) => Scope::Read,
        ("usage", Some("sandboxes" | "hours"), None) => Scope::Read,
        ("usage", Some("projects"), None) | ("export", None, None) => Scope::Operator,
        ("network-default", None, None) if reads => Scope::Read,
        ("audit", None, None) => Scope::Audit,
        ("network-default", None, None) => Scope::Admin,
        ("node" | "projects", _, _) => Scope::Operator,
        ("templates" | "snapshots" | "volumes", _, _) => by_method(reads),
        ("sandboxes", Some(_), Some(part)) => return in_sandbox(part, fourth, reads),
        ("sandboxes", _, None) => by_method(reads),
        _ => return None,
    })
}

const fn by_method(reads: bool) -> Scope {
    if reads { Scope::Read } else { Scope::Create }
}

fn in_sandbox(part: &str, rest: Option<&str>, reads: bool) -> Option<Scope> {
    Some(match (part, rest) {
        ("exec" | "processes" | "repl" | "run" | "fs" | "logs", _) => Scope::Exec,
        // What listens is to be seen; who may come in is more.
        ("ports" | "links", _) | ("metrics", None) if reads => Scope::Read,
        ("ports", _) => Scope::Exec,
        // What the code inside reached.
        ("network", Some("log" | "suggest")) => Scope::Exec,
        ("lifecycle" | "network" | "fork" | "fork-tree" | "promote" | "pause" | "resume", _)
        | ("hibernate" | "wake" | "rollback" | "snapshots", _) => by_method(reads),
        _ => return None,
    })
}

/// What a key for one sandbox may not do with it, because others come of it, or go.
fn is_about_others(path: &str) -> bool {
    let part = path.split('/').nth(4);
    matches!(part, Some("fork" | "fork-tree" | "promote" | "snapshots"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::scope::Scopes;

    fn reach(scopes: &[Scope], sandbox: Option<&str>) -> Reach {
        Reach {
            file: None,
            scopes: scopes.iter().copied().collect::<Scopes>(),
            sandbox: sandbox.map(|id| SandboxId::parse(id).unwrap()),
        }
    }

    #[test]
    fn each_route_needs_what_it_does() {
        for (method, path, scope) in [
            (Method::GET, "/v1/sandboxes", Scope::Read),
            (Method::POST, "/v1/sandboxes", Scope::Create),
            (Method::DELETE, "/v1/sandboxes/sb-local-x", Scope::Create),
            (Method::POST, "/v1/sandboxes/sb-local-x/exec", Scope::Exec),
            (Method::GET, "/v1/sandboxes/sb-local-x/fs", Scope::Exec),
            (Method::GET, "/v1/sandboxes/sb-local-x/ports", Scope::Read),
            (
                Method::POST,
                "/v1/sandboxes/sb-local-x/ports/1/links",
                Scope::Exec,
            ),
            (
                Method::POST,
                "/v1/sandboxes/sb-local-x/ports/1/wait",
                Scope::Exec,
            ),
            (Method::PUT, "/v1/network-default", Scope::Admin),
            (Method::GET, "/v1/me/tokens", Scope::Admin),
            (Method::GET, "/v1/audit", Scope::Audit),
            (Method::GET, "/v1/projects", Scope::Operator),
            (Method::GET, "/v1/export", Scope::Operator),
            (Method::GET, "/v1/usage", Scope::Read),
            (Method::GET, "/v1/usage/hours", Scope::Read),
            (Method::GET, "/v1/sandboxes/sb-local-x/metrics", Scope::Read),
            (Method::GET, "/v1/usage/projects", Scope::Operator),
            (Method::GET, "/v1/node", Scope::Operator),
            (
                Method::GET,
                "/v1/sandboxes/sb-local-x/network/log",
                Scope::Exec,
            ),
        ] {
            assert_eq!(needed(&method, path), Some(scope), "{method} {path}");
        }
        for path in [
            "/v1/nonsense",
            "/v1/sandboxes/x/nonsense",
            "/",
            "/v1",
            "/v1/",
        ] {
            assert_eq!(needed(&Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn every_documented_route_is_named() {
        let document = serde_json::to_value(crate::openapi()).unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                assert!(needed(&method, path).is_some(), "{method} {path}");
            }
        }
    }

    #[test]
    fn a_key_for_one_sandbox_sees_no_other() {
        let key = reach(&[Scope::Exec], Some("sb-local-mine"));
        let ask = |method: Method, path: &str| check_path(&key, &method, path);
        assert_eq!(
            ask(Method::POST, "/v1/sandboxes/sb-local-mine/exec"),
            Ok(())
        );
        assert_eq!(ask(Method::GET, "/v1/sandboxes/sb-local-mine"), Ok(()));
        assert_eq!(ask(Method::GET, "/v1/me"), Ok(()));
        let other = SandboxId::parse("sb-local-other").unwrap();
        assert_eq!(
            ask(Method::GET, "/v1/sandboxes/sb-local-other"),
            Err(Denied::OtherSandbox(other))
        );
        for path in [
            "/v1/sandboxes",
            "/v1/volumes",
            "/v1/me/tokens",
            "/v1/sandboxes/",
        ] {
            assert_eq!(
                ask(Method::GET, path),
                Err(Denied::OnlyOneSandbox),
                "{path}"
            );
        }
        for part in ["fork", "fork-tree", "promote", "snapshots"] {
            let path = format!("/v1/sandboxes/sb-local-mine/{part}");
            assert_eq!(ask(Method::POST, &path), Err(Denied::OnlyOneSandbox));
        }
        assert_eq!(
            ask(Method::DELETE, "/v1/sandboxes/sb-local-mine"),
            Err(Denied::Scope(Scope::Create))
        );
    }
}
