//! Lists of public hosts that go by one name. Product content: well-known names, nothing of any
//! installation's own.

use dayfly_api::{NetworkMode, NetworkPreset};
use dayfly_types::egress::{EgressRule, EgressTarget, HostPattern, Ports};

use crate::network::read::present_rule;

/// What stands in front of a preset's name in a list of rules.
pub(crate) const MARK: &str = "preset:";
/// The preset that is a mode.
pub(crate) const PUBLIC: &str = "public";

const HTTPS: &[u16] = &[443];
/// Package archives whose files are signed, and which are therefore fetched without TLS.
const HTTP_TOO: &[u16] = &[80, 443];

type Hosts = &'static [(&'static [u16], &'static [&'static str])];

struct Preset {
    name: &'static str,
    description: &'static str,
    hosts: Hosts,
}

const PRESETS: [Preset; 4] = [
    Preset {
        name: "package-registries",
        description: "Registries of packages: Python, JavaScript, Rust, Go, Java, Ruby, PHP, .NET, \
            conda, Debian, Ubuntu, Alpine",
        hosts: PACKAGE_REGISTRIES,
    },
    Preset {
        name: "container-registries",
        description: "Registries of images of containers, and where they send for the layers: \
            Docker Hub, GitHub, Quay, Kubernetes, Google, Microsoft, Amazon's public one",
        hosts: CONTAINER_REGISTRIES,
    },
    Preset {
        name: "git-hosts",
        description: "Public Git hosts, by HTTPS",
        hosts: GIT_HOSTS,
    },
    Preset {
        name: "llm-apis",
        description: "APIs of public language models",
        hosts: LLM_APIS,
    },
];

const PACKAGE_REGISTRIES: Hosts = &[
    (
        HTTPS,
        &[
            "pypi.org",
            "files.pythonhosted.org",
            "registry.npmjs.org",
            "registry.yarnpkg.com",
            "npm.jsr.io",
            "crates.io",
            "index.crates.io",
            "static.crates.io",
            "static.rust-lang.org",
            "proxy.golang.org",
            "sum.golang.org",
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "rubygems.org",
            "index.rubygems.org",
            "packagist.org",
            "repo.packagist.org",
            "api.nuget.org",
            "conda.anaconda.org",
            "repo.anaconda.com",
        ],
    ),
    (
        HTTP_TOO,
        &[
            "deb.debian.org",
            "security.debian.org",
            "archive.ubuntu.com",
            "security.ubuntu.com",
            "dl-cdn.alpinelinux.org",
        ],
    ),
];

/// A registry redirects whoever fetches a layer to hosts of another name. Where those are buckets,
/// they are the registry's own; a storage service as a whole is none of these.
const CONTAINER_REGISTRIES: Hosts = &[(
    HTTPS,
    &[
        "docker.io",
        "index.docker.io",
        "registry-1.docker.io",
        "auth.docker.io",
        "production.cloudflare.docker.com",
        "production.cloudfront.docker.com",
        "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
        "ghcr.io",
        "pkg-containers.githubusercontent.com",
        "quay.io",
        "cdn.quay.io",
        "cdn01.quay.io",
        "cdn02.quay.io",
        "cdn03.quay.io",
        "cdn04.quay.io",
        "cdn05.quay.io",
        "cdn06.quay.io",
        "registry.k8s.io",
        "cdn.registry.k8s.io",
        "d39mqg4b1dx9z1.cloudfront.net",
        "prod-registry-k8s-io-ap-northeast-1.s3.dualstack.ap-northeast-1.amazonaws.com",
        "prod-registry-k8s-io-ap-south-1.s3.dualstack.ap-south-1.amazonaws.com",
        "prod-registry-k8s-io-ap-southeast-1.s3.dualstack.ap-southeast-1.amazonaws.com",
        "prod-registry-k8s-io-eu-central-1.s3.dualstack.eu-central-1.amazonaws.com",
        "prod-registry-k8s-io-eu-west-1.s3.dualstack.eu-west-1.amazonaws.com",
        "prod-registry-k8s-io-us-east-1.s3.dualstack.us-east-1.amazonaws.com",
        "prod-registry-k8s-io-us-east-2.s3.dualstack.us-east-2.amazonaws.com",
        "prod-registry-k8s-io-us-west-1.s3.dualstack.us-west-1.amazonaws.com",
        "prod-registry-k8s-io-us-west-2.s3.dualstack.us-west-2.amazonaws.com",
        "gcr.io",
        "us.gcr.io",
        "eu.gcr.io",
        "asia.gcr.io",
        "*.pkg.dev",
        "mcr.microsoft.com",
        "*.data.mcr.microsoft.com",
        "public.ecr.aws",
        "d2glxqk2uabbnd.cloudfront.net",
        "d5l0dvt14r5h8.cloudfront.net",
    ],
)];

const GIT_HOSTS: Hosts = &[(
    HTTPS,
    &[
        "github.com",
        "api.github.com",
        "codeload.github.com",
        "raw.githubusercontent.com",
        "objects.githubusercontent.com",
        "release-assets.githubusercontent.com",
        "media.githubusercontent.com",
        "gitlab.com",
        "bitbucket.org",
        "codeberg.org",
    ],
)];

const LLM_APIS: Hosts = &[(
    HTTPS,
    &[
        "api.anthropic.com",
        "api.openai.com",
        "generativelanguage.googleapis.com",
        "api.mistral.ai",
        "api.cohere.com",
        "api.deepseek.com",
        "api.groq.com",
        "api.together.xyz",
        "api.x.ai",
        "openrouter.ai",
    ],
)];

/// The names of all presets.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name).chain([PUBLIC])
}

/// The rules of a preset, which records call `PRESET/HOST`. `None`: there is no such preset, or
/// it is a mode.
pub(crate) fn rules(name: &str) -> Option<Vec<EgressRule>> {
    let preset = PRESETS.iter().find(|preset| preset.name == name)?;
    let groups = preset.hosts.iter();
    let rules =
        groups.flat_map(|(ports, hosts)| hosts.iter().filter_map(|host| rule(name, host, ports)));
    Some(rules.collect())
}

/// A test sees to it that every host is one.
fn rule(preset: &str, host: &str, ports: &[u16]) -> Option<EgressRule> {
    let pattern: HostPattern = host.parse().ok()?;
    Some(EgressRule {
        id: format!("{preset}/{host}"),
        target: EgressTarget::Host(pattern),
        ports: Ports::new(ports.to_vec()).ok()?,
    })
}

/// All presets as the public API shows them.
pub(crate) fn present() -> Vec<NetworkPreset> {
    let lists = PRESETS.iter().map(|preset| NetworkPreset {
        name: preset.name.to_owned(),
        description: preset.description.to_owned(),
        mode: NetworkMode::Allowlist,
        rules: rules(preset.name)
            .unwrap_or_default()
            .iter()
            .map(present_rule)
            .collect(),
    });
    let public = NetworkPreset {
        name: PUBLIC.to_owned(),
        description: "Every public address, on ports that are not known for abuse".to_owned(),
        mode: NetworkMode::Public,
        rules: Vec::new(),
    };
    lists.chain([public]).collect()
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::{EgressMode, EgressPolicy};

    use super::*;

    #[test]
    fn every_host_of_a_preset_is_a_public_name() {
        let mut all = Vec::new();
        for preset in &PRESETS {
            let hosts: usize = preset.hosts.iter().map(|(_, hosts)| hosts.len()).sum();
            let rules = rules(preset.name).unwrap();
            assert_eq!(rules.len(), hosts, "{}", preset.name);
            for rule in &rules {
                let EgressTarget::Host(HostPattern::Exact(name) | HostPattern::OneLabel(name)) =
                    &rule.target
                else {
                    panic!("{rule:?}");
                };
                let suffix = psl::suffix(name.as_str().as_bytes()).unwrap();
                assert!(suffix.is_known(), "{name} is in no public domain");
            }
            all.extend(rules);
        }
        // Together they are one policy: no host is in two presets, and all fit.
        EgressPolicy::new(EgressMode::Allowlist, all).unwrap();
        assert_eq!(rules(PUBLIC), None);
        assert_eq!(names().count(), present().len());
    }
}
