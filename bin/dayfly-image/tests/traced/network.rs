//! Registries that may not be dialled.

use std::net::{SocketAddr, TcpListener};

use dayfly_types::container_image::ImageJobOrigin;
use dayfly_types::egress::InternalNetwork;

use crate::workshop::{ROOM, Workshop};

fn registry(host: &str, resolver: SocketAddr, networks: Vec<InternalNetwork>) -> ImageJobOrigin {
    ImageJobOrigin::Registry {
        reference: format!("{host}/team/app:1"),
        resolvers: vec![resolver],
        authority: None,
        login: None,
        inside: Vec::new(),
        networks,
    }
}

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
        workshop.write_job(registry(&host, own, Vec::new()), ROOM);
        workshop
            .run()
            .assert_refused("unless the operator allows it");
    }
    assert!(listener.accept().is_err(), "somebody came");
}

#[test]
fn beside_an_opened_network_nothing_inside_is_dialled() {
    let network = r#"[{"name": "registry", "projects": ["team"], "ranges": ["10.20.0.20/32"],
        "ports": [5000]}]"#;
    let named = network.replace("\"ports\"", "\"hosts\": [\"registry.example\"], \"ports\"");
    let resolver = SocketAddr::from(([127, 0, 0, 1], 53));
    for (host, network) in [
        ("10.20.0.21:5000", network),
        ("10.20.0.20:5001", network),
        // By its address alone, where only names lead.
        ("10.20.0.20:5000", &named),
    ] {
        let Some(workshop) = Workshop::new() else {
            return;
        };
        let networks = serde_json::from_str(network).unwrap();
        workshop.write_job(registry(host, resolver, networks), ROOM);
        workshop
            .run()
            .assert_refused("unless the operator allows it");
    }
}
