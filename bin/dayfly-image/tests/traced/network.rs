//! Registries that may not be dialled.

use std::net::TcpListener;

use dayfly_types::container_image::ImageJobOrigin;

use crate::workshop::{ROOM, Workshop};

#[test]
fn a_registry_on_this_host_or_at_a_metadata_service_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let own = listener.local_addr().unwrap();
    for host in [
        own.to_string(),
        "169.254.169.254".to_owned(),
        "[::1]:443".to_owned(),
    ] {
        let Some(workshop) = Workshop::new() else {
            return;
        };
        let origin = ImageJobOrigin::Registry {
            reference: format!("{host}/team/app:1"),
            resolvers: vec![own],
            authority: None,
            login: None,
            inside: Vec::new(),
        };
        workshop.write_job(origin, ROOM);
        workshop
            .run()
            .assert_refused("unless the operator allows it");
    }
    assert!(listener.accept().is_err(), "somebody came");
}
