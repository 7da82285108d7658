use serde_json::{Value, json};

use super::*;
use crate::config::{ExposedPort, ExposedProtocol, HealthTest};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

fn descriptor(media_type: &str, size: u64) -> Value {
    json!({"mediaType": media_type, "digest": Digest::of(b"x"), "size": size})
}

fn for_platform(os: &str, architecture: &str) -> Value {
    let mut one = descriptor(OCI_MANIFEST, 7);
    one["platform"] = json!({"os": os, "architecture": architecture});
    one
}

fn manifest(layers: &[Value]) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": descriptor(CONFIGS[0], 10),
        "layers": layers,
    })
}

fn index(entries: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries})
}

fn step(document: &Value, announced: &str) -> Result<Step, InvalidDocument> {
    Descent::default().step(document.to_string().as_bytes(), announced)
}

fn arrive(document: &Value) -> Result<Manifest, InvalidDocument> {
    match step(document, OCI_MANIFEST)? {
        Step::Arrived(manifest) => Ok(manifest),
        Step::Down(other) => panic!("{other:?}"),
    }
}

fn config(diff_ids: usize) -> Value {
    let diff_ids = vec![Digest::of(b"content"); diff_ids];
    json!({
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "config": {
            "Env": ["PATH=/bin", "EMPTY=", "A=b=c"],
            "User": "app:app",
            "WorkingDir": "",
            "Entrypoint": ["/run"],
            "Cmd": null,
            "OnBuild": ["RUN true"],
            "Healthcheck": {"Test": ["CMD-SHELL", "true"], "Interval": 1_000_000_000, "Timeout": 0},
            "ExposedPorts": {"80/tcp": {}, "53/udp": {}, "9000": {}},
            "Labels": {"a": "b"},
        },
    })
}

fn complete(config: &Value, layers: usize) -> Result<Image, InvalidDocument> {
    let manifest = arrive(&manifest(&vec![descriptor(LAYER, 3); layers]))?;
    manifest.complete(Digest::of(b"manifest"), config.to_string().as_bytes())
}

#[test]
fn a_manifest_and_its_config_are_an_image() {
    let image = complete(&config(2), 2).unwrap();
    assert_eq!(image.layers.len(), 2);
    assert_eq!(image.layers[0].compression, LayerCompression::Gzip);
    assert_eq!(image.layers[0].digest, Digest::of(b"x"));
    assert_eq!(image.layers[0].diff_id, Digest::of(b"content"));
    let config = image.config;
    assert_eq!(config.on_build, ["RUN true"]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = [pair("PATH", "/bin"), pair("EMPTY", ""), pair("A", "b=c")];
    assert_eq!(config.environment, environment);
    assert_eq!(config.user.as_deref(), Some("app:app"));
    assert_eq!(config.working_directory, None);
    assert_eq!(config.entrypoint, ["/run"]);
    assert!(config.command.is_empty());
    let health = config.health_check.unwrap();
    assert_eq!(health.test, HealthTest::Shell("true".to_owned()));
    assert_eq!(health.interval, Some(std::time::Duration::from_secs(1)));
    assert_eq!(health.timeout, None);
    let port = |port, protocol| ExposedPort { port, protocol };
    let ports = [
        port(53, ExposedProtocol::Udp),
        port(80, ExposedProtocol::Tcp),
        port(9000, ExposedProtocol::Tcp),
    ];
    assert_eq!(config.exposed_ports, ports);
}

#[test]
fn both_families_and_three_forms_of_layers_are_known() {
    for (kind, compression) in [
        ("oci.image.layer.v1.tar", LayerCompression::None),
        ("oci.image.layer.v1.tar+gzip", LayerCompression::Gzip),
        ("oci.image.layer.v1.tar+zstd", LayerCompression::Zstd),
        ("docker.image.rootfs.diff.tar", LayerCompression::None),
        ("docker.image.rootfs.diff.tar.gzip", LayerCompression::Gzip),
    ] {
        let layer = descriptor(&format!("application/vnd.{kind}"), 1);
        assert_eq!(
            arrive(&manifest(&[layer])).unwrap().layers[0].2,
            compression
        );
    }
    let mut docker = manifest(&[]);
    docker["mediaType"] = json!(DOCKER_MANIFEST);
    docker["config"]["mediaType"] = json!(CONFIGS[1]);
    assert!(step(&docker, DOCKER_MANIFEST).is_ok());
    // OCI leaves the kind out; the announcement has it.
    docker.as_object_mut().unwrap().remove("mediaType");
    assert!(step(&docker, OCI_MANIFEST).is_ok());
}

#[test]
fn layers_that_cannot_be_read_are_refused_by_name() {
    for kind in [
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
        "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
        "application/octet-stream",
        "",
    ] {
        let error = arrive(&manifest(&[descriptor(kind, 1)])).unwrap_err();
        assert!(matches!(&error, InvalidDocument::LayerKind { media_type } if media_type == kind));
    }
    let mut chart = manifest(&[]);
    chart["config"]["mediaType"] = json!("application/vnd.cncf.helm.config.v1+json");
    let error = arrive(&chart).unwrap_err();
    assert!(matches!(error, InvalidDocument::NotAnImage { .. }));
}

#[test]
fn counts_and_sizes_are_bounded() {
    let layers = |count| vec![descriptor(LAYER, 1); count];
    assert!(arrive(&manifest(&layers(IMAGE_LAYERS_MAX))).is_ok());
    let error = arrive(&manifest(&layers(IMAGE_LAYERS_MAX + 1))).unwrap_err();
    assert!(matches!(
        error,
        InvalidDocument::TooManyLayers { found: 128 }
    ));
    let sized = |size| arrive(&manifest(&[descriptor(LAYER, size)]));
    assert!(sized(IMAGE_LAYER_BYTES_MAX).is_ok());
    let error = sized(IMAGE_LAYER_BYTES_MAX + 1).unwrap_err();
    assert!(matches!(error, InvalidDocument::LayerTooLarge { .. }));
    assert!(sized(u64::MAX).is_err());
    let error = arrive(&manifest(&vec![
        descriptor(LAYER, IMAGE_LAYER_BYTES_MAX);
        5
    ]))
    .unwrap_err();
    assert!(matches!(error, InvalidDocument::TooLarge));
    let many = index(&vec![
        for_platform("linux", "amd64");
        IMAGE_INDEX_ENTRIES_MAX + 1
    ]);
    let error = step(&many, OCI_INDEX).unwrap_err();
    assert!(matches!(error, InvalidDocument::TooManyEntries { .. }));
    let long = " ".repeat(usize::try_from(IMAGE_DOCUMENT_BYTES_MAX).unwrap() + 1);
    let error = Descent::default()
        .step(long.as_bytes(), OCI_INDEX)
        .unwrap_err();
    assert!(matches!(error, InvalidDocument::TooLong));
}

#[test]
fn a_document_of_two_kinds_or_of_another_kind_is_refused() {
    let mut both = manifest(&[]);
    both["manifests"] = json!([for_platform("linux", "amd64")]);
    assert!(matches!(
        step(&both, OCI_MANIFEST),
        Err(InvalidDocument::Kind)
    ));
    assert!(matches!(step(&both, OCI_INDEX), Err(InvalidDocument::Kind)));
    let neither = json!({"schemaVersion": 2});
    assert!(matches!(
        step(&neither, OCI_INDEX),
        Err(InvalidDocument::Kind)
    ));
    let other = |document: &Value, announced: &str| {
        let error = step(document, announced).unwrap_err();
        assert!(
            matches!(error, InvalidDocument::OtherKind { .. }),
            "{announced}"
        );
    };
    other(&manifest(&[]), OCI_INDEX);
    other(&manifest(&[]), DOCKER_MANIFEST);
    other(&manifest(&[]), "text/html");
    other(&index(&[for_platform("linux", "amd64")]), OCI_MANIFEST);
    let mut lying = manifest(&[]);
    lying["mediaType"] = json!(OCI_INDEX);
    other(&lying, OCI_INDEX);
    let old = json!({"schemaVersion": 1, "fsLayers": [], "history": []});
    let error = step(&old, DOCKER_MANIFEST).unwrap_err();
    assert!(matches!(error, InvalidDocument::Schema { version: 1 }));
}

#[test]
fn wrong_types_and_repeated_keys_are_refused() {
    let good = manifest(&[descriptor(LAYER, 3)]).to_string();
    assert!(
        Descent::default()
            .step(good.as_bytes(), OCI_MANIFEST)
            .is_ok()
    );
    for (from, to) in [
        ("\"size\":3", "\"size\":-3"),
        ("\"size\":3", "\"size\":3.5"),
        ("\"size\":3", "\"size\":\"3\""),
        ("\"size\":3", "\"size\":3,\"size\":4"),
        (
            "\"schemaVersion\":2",
            "\"schemaVersion\":2,\"schemaVersion\":2",
        ),
        ("\"schemaVersion\":2", "\"schemaVersion\":2,\"layers\":[]"),
        ("\"schemaVersion\":2", "\"schemaVersion\":\"2\""),
        ("sha256:", "sha512:"),
        ("sha256:", "../../"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let error = Descent::default()
            .step(bad.as_bytes(), OCI_MANIFEST)
            .unwrap_err();
        assert!(
            matches!(error, InvalidDocument::Unreadable { .. }),
            "{to}: {error:?}"
        );
    }
    for text in ["", "[]", "null", "\u{feff}{}", "{\"schemaVersion\":2"] {
        assert!(
            Descent::default()
                .step(text.as_bytes(), OCI_MANIFEST)
                .is_err()
        );
    }
    let deep = "[".repeat(100_000);
    assert!(
        Descent::default()
            .step(deep.as_bytes(), OCI_MANIFEST)
            .is_err()
    );
}

#[test]
fn the_platform_is_chosen_from_an_index_or_what_there_is_is_told() {
    let attestation = for_platform("unknown", "unknown");
    let arm = for_platform("linux", "arm64");
    let mut ours = for_platform("linux", "amd64");
    ours["size"] = json!(99);
    let found = step(&index(&[attestation.clone(), arm.clone(), ours]), OCI_INDEX);
    assert!(matches!(found, Ok(Step::Down(one)) if one.size == 99));
    let error = step(&index(&[arm, attestation]), OCI_INDEX).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("there is linux/arm64, unknown/unknown")
    );
    let error = step(&index(&[]), OCI_INDEX).unwrap_err();
    assert!(error.to_string().ends_with("there is none"));
    let silent = index(&[descriptor(OCI_MANIFEST, 98)]);
    assert!(matches!(step(&silent, OCI_INDEX), Ok(Step::Down(one)) if one.size == 98));
}

#[test]
fn an_index_may_lie_in_an_index_and_no_deeper() {
    let nested = index(&[descriptor(OCI_INDEX, 5)]).to_string();
    let mut descent = Descent::default();
    assert!(descent.step(nested.as_bytes(), OCI_INDEX).is_ok());
    assert!(descent.step(nested.as_bytes(), OCI_INDEX).is_ok());
    let error = descent.step(nested.as_bytes(), OCI_INDEX).unwrap_err();
    assert!(matches!(error, InvalidDocument::Nested));
}

#[test]
fn a_config_that_does_not_fit_is_refused() {
    let error = complete(&config(1), 2).unwrap_err();
    let fits = matches!(
        error,
        InvalidDocument::LayerCount {
            layers: 2,
            diff_ids: 1
        }
    );
    assert!(fits, "{error:?}");
    let change = |path: &str, value: Value| {
        let mut changed = config(1);
        *changed.pointer_mut(path).unwrap() = value;
        complete(&changed, 1).map(drop)
    };
    assert!(change("/config/User", json!("0")).is_ok());
    assert!(change("/config", json!(null)).is_ok());
    for (path, value) in [
        ("/architecture", json!("arm64")),
        ("/os", json!("windows")),
        ("/rootfs/type", json!("other")),
        ("/rootfs/diff_ids", json!(["sha512:00"])),
        ("/config/Env", json!(["NOTHING"])),
        ("/config/Env", json!(["=value"])),
        ("/config/Env", json!(["A=\0"])),
        ("/config/Env", json!("A=b")),
        ("/config/Env", json!(vec!["A=b"; 1025])),
        ("/config/Cmd", json!(["a\0b"])),
        ("/config/Entrypoint", json!("/run")),
        ("/config/User", json!("a\0")),
        ("/config/User", json!(1000)),
        ("/config/ExposedPorts", json!({"80/quic": {}})),
        ("/config/ExposedPorts", json!({"0/tcp": {}})),
        ("/config/ExposedPorts", json!({"+80/tcp": {}})),
        ("/config/ExposedPorts", json!({"80-90/tcp": {}})),
        ("/config/Healthcheck/Test", json!(["CMD"])),
        ("/config/Healthcheck/Test", json!(["OTHER", "x"])),
        ("/config/Healthcheck/Interval", json!(-1)),
    ] {
        assert!(change(path, value.clone()).is_err(), "{path} {value}");
    }
}
