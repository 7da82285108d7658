//! Stages: which there are, what they are built on, and which of them a target needs.

use std::collections::BTreeSet;

use dayfly_types::limits::IMAGE_REFERENCE_BYTES_MAX;

use crate::StageConfig;
use crate::error::{DockerfileError, LineProblem, excerpt};
use crate::expand::{Budget, Scope, Style, Variables, expand};
use crate::instruction::{Instruction, InstructionKind, StageText};
use crate::plan::{Planner, given};
use crate::stage_text::{self, check_platform};
use crate::step::{MountFrom, StageBase, StagePlan};
use crate::syntax::{self, FileText};

/// What `FROM` and `ARG` know without being given it.
const PLATFORM_ARGUMENTS: [(&str, &str); 8] = [
    ("BUILDARCH", "amd64"),
    ("BUILDOS", "linux"),
    ("BUILDPLATFORM", stage_text::PLATFORM),
    ("BUILDVARIANT", ""),
    ("TARGETARCH", "amd64"),
    ("TARGETOS", "linux"),
    ("TARGETPLATFORM", stage_text::PLATFORM),
    ("TARGETVARIANT", ""),
];

/// Arguments that may be given although no ARG names them. They have no effect then: how a build
/// reaches the network is not for the Dockerfile to say.
const PROXY_ARGUMENTS: [&str; 5] = [
    "all_proxy",
    "ftp_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// A Dockerfile that was read and holds nothing that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dockerfile {
    text: FileText,
}

/// Reads the text of a Dockerfile.
///
/// # Errors
/// What is wrong with it: its syntax, or an instruction or flag that is not supported.
pub fn parse(text: &str) -> Result<Dockerfile, DockerfileError> {
    let text = syntax::read(text)?;
    stage_text::check_later(&text.stages)?;
    Ok(Dockerfile { text })
}

impl Dockerfile {
    /// How many stages there are.
    #[must_use]
    pub fn stages(&self) -> usize {
        self.text.stages.len()
    }

    /// The name of a stage, in lower case.
    #[must_use]
    pub fn stage_name(&self, stage: usize) -> Option<&str> {
        self.text.stages.get(stage)?.name.as_deref()
    }

    /// The stages that the target needs, in the order in which they have to be built; the last of
    /// them is the target itself. A target is the name or the number of a stage; None is the last
    /// stage.
    ///
    /// # Errors
    /// When there is no such stage, when no ARG names one of the arguments, or when a FROM cannot
    /// be expanded.
    pub fn needed(
        &self,
        target: Option<&str>,
        arguments: &Variables,
    ) -> Result<Vec<usize>, DockerfileError> {
        self.check_arguments(arguments)?;
        let target = self.target(target)?;
        let mut needed = BTreeSet::new();
        let mut waiting = vec![target];
        while let Some(stage) = waiting.pop() {
            if !needed.insert(stage) {
                continue;
            }
            if let StageBase::Stage(below) = self.base(stage, arguments)? {
                waiting.push(below);
            }
            let instructions = self.stage(stage)?.instructions.iter();
            waiting.extend(
                instructions
                    .flat_map(|one| one.kind.trees())
                    .filter_map(|tree| match tree {
                        MountFrom::Stage(other) => Some(*other),
                        MountFrom::Context | MountFrom::Image(_) => None,
                    }),
            );
        }
        // Stages need only earlier ones.
        Ok(needed.into_iter().collect())
    }

    /// What a stage is built on.
    ///
    /// # Errors
    /// When there is no such stage, or when its FROM cannot be expanded or means nothing that can
    /// be built on.
    pub fn base(&self, stage: usize, arguments: &Variables) -> Result<StageBase, DockerfileError> {
        let text = self.stage(stage)?;
        let global = self.global(arguments)?;
        let problem = |problem: LineProblem| problem.at(text.line);
        let scope = Scope {
            above: &global,
            below: &Variables::new(),
        };
        let mut budget = Budget::new();
        let mut expanded = |text: &str| expand(text, self.style(), scope, &mut budget);
        if let Some(platform) = &text.platform {
            let platform = expanded(platform).map_err(problem)?;
            check_platform(&platform).map_err(problem)?;
        }
        let image = expanded(&text.image).map_err(problem)?;
        if image == "scratch" {
            return Ok(StageBase::Scratch);
        }
        let mut earlier = self.text.stages.iter().take(stage);
        let lower = image.to_ascii_lowercase();
        if let Some(below) = earlier.position(|one| one.name.as_deref() == Some(lower.as_str())) {
            return Ok(StageBase::Stage(below));
        }
        if image.is_empty() || image.len() > IMAGE_REFERENCE_BYTES_MAX {
            let instead = "name an image; an ARG before the first FROM may need a value";
            let written = &text.image;
            return Err(problem(LineProblem::value("the base", written, instead)));
        }
        Ok(StageBase::Image(image))
    }

    /// The steps of a stage, on a base that says `base` of itself. For a stage FROM another one
    /// that is the config of the other's plan.
    ///
    /// # Errors
    /// When there is no such stage, or when an instruction cannot be expanded or means nothing
    /// with the values that it gets.
    pub fn plan(
        &self,
        stage: usize,
        base: &StageConfig,
        arguments: &Variables,
    ) -> Result<StagePlan, DockerfileError> {
        let text = self.stage(stage)?;
        let global = self.global(arguments)?;
        let mut planner = Planner::new(self.style(), base, arguments, &global)?;
        for instruction in &text.instructions {
            let problem = |problem: LineProblem| problem.at(instruction.line);
            planner.add(instruction).map_err(problem)?;
        }
        Ok(planner.finish())
    }

    fn style(&self) -> Style {
        Style {
            escape: self.text.escape,
            unquotes: true,
        }
    }

    fn stage(&self, stage: usize) -> Result<&StageText, DockerfileError> {
        let found = self.text.stages.get(stage);
        found.ok_or(DockerfileError::NoSuchStage { stage })
    }

    fn target(&self, target: Option<&str>) -> Result<usize, DockerfileError> {
        let count = self.text.stages.len();
        let Some(target) = target else {
            return Ok(count.saturating_sub(1));
        };
        let lower = target.to_ascii_lowercase();
        let named = |stage: &StageText| stage.name.as_deref() == Some(lower.as_str());
        let by_name = self.text.stages.iter().position(named);
        let by_number = || target.parse().ok().filter(|number| *number < count);
        by_name.or_else(by_number).ok_or_else(|| {
            let names = self.text.stages.iter().filter_map(|one| one.name.clone());
            let names: Vec<String> = names.map(|name| excerpt(&name)).collect();
            DockerfileError::UnknownTarget {
                name: excerpt(target),
                there: match names.is_empty() {
                    true => "none has a name; use a number, counted from 0".to_owned(),
                    false => format!("use one of: {}", names.join(", ")),
                },
            }
        })
    }

    /// The arguments that FROM knows.
    fn global(&self, arguments: &Variables) -> Result<Variables, DockerfileError> {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut global: Variables = PLATFORM_ARGUMENTS.map(owned).into_iter().collect();
        let mut budget = Budget::new();
        for (line, name, default) in self.text.arguments.iter().flat_map(declared) {
            let given = given(arguments, name).map_err(|problem| problem.at(line))?;
            let value = match (given, default) {
                (Some(given), _) => given,
                (None, Some(default)) => {
                    let scope = Scope {
                        above: &global,
                        below: &Variables::new(),
                    };
                    expand(default, self.style(), scope, &mut budget)
                        .map_err(|problem| problem.at(line))?
                }
                (None, None) => continue,
            };
            global.insert(name.to_owned(), value);
        }
        Ok(global)
    }

    fn check_arguments(&self, arguments: &Variables) -> Result<(), DockerfileError> {
        let stages = self.text.stages.iter();
        let all = stages.flat_map(|stage| &stage.instructions);
        let all = all.chain(&self.text.arguments).flat_map(declared);
        let known: BTreeSet<&str> = all.map(|(_, name, _)| name).collect();
        let is_known = |name: &str| {
            let is_proxy = PROXY_ARGUMENTS.contains(&name.to_ascii_lowercase().as_str());
            is_proxy || known.contains(name)
        };
        match arguments.keys().find(|name| !is_known(name)) {
            Some(name) => Err(DockerfileError::UnknownArgument {
                name: excerpt(name),
            }),
            None => Ok(()),
        }
    }
}

/// The names that an ARG declares, with their line and default.
fn declared(instruction: &Instruction) -> Vec<(usize, &str, Option<&str>)> {
    match &instruction.kind {
        InstructionKind::Arguments(all) => all
            .iter()
            .map(|(name, default)| (instruction.line, name.as_str(), default.as_deref()))
            .collect(),
        InstructionKind::Environment(_)
        | InstructionKind::Run { .. }
        | InstructionKind::Copy(_)
        | InstructionKind::Directory(_)
        | InstructionKind::User(_)
        | InstructionKind::Command(_)
        | InstructionKind::EntryPoint(_)
        | InstructionKind::Shell(_)
        | InstructionKind::Health(_)
        | InstructionKind::Other => Vec::new(),
    }
}
