//! From the instructions of a stage to its steps: variables get their values, paths become
//! absolute, and every instruction changes what the next ones start with.

use dayfly_types::limits::DOCKERFILE_ENVIRONMENT_BYTES_MAX;

use crate::config::StageConfig;
use crate::copy_text::{self, DOCUMENT};
use crate::error::{DockerfileError, LineProblem};
use crate::expand::{Budget, Scope, Style, Variables, expand};
use crate::instruction::{
    CommandText, CopyFromText, CopyText, Instruction, InstructionKind, MountKind, MountText,
};
use crate::path::{absolute, below_root, means_directory};
use crate::step::{
    CopyFrom, InlineFile, MountFrom, RunCommand, RunMount, StagePlan, Step, StepWork,
};

/// Where programs are looked up on a base that does not say it.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A stage, as far as it was read.
pub(crate) struct Planner<'a> {
    style: Style,
    /// What whoever builds gave.
    given: &'a Variables,
    /// ARG before the first FROM.
    global: &'a Variables,
    budget: Budget,
    config: StageConfig,
    /// CMD stands in this stage, so ENTRYPOINT leaves it.
    has_command: bool,
    steps: Vec<Step>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        style: Style,
        base: &StageConfig,
        given: &'a Variables,
        global: &'a Variables,
    ) -> Result<Self, DockerfileError> {
        let mut config = base.clone();
        let path = PATH_DEFAULT.to_owned();
        config.environment.entry("PATH".to_owned()).or_insert(path);
        // Variables of an image are there before any ARG of the stage above it.
        let StageConfig {
            arguments,
            environment,
            ..
        } = &mut config;
        arguments.retain(|name, _| !environment.contains_key(name));
        config.shell = config.shell_or_default();
        let planner = Self {
            style,
            given,
            global,
            budget: Budget::new(),
            config,
            has_command: false,
            steps: Vec::new(),
        };
        let fits = planner.check_environment();
        fits.map_err(|_| DockerfileError::BaseEnvironment)?;
        Ok(planner)
    }

    pub(crate) fn finish(self) -> StagePlan {
        StagePlan {
            steps: self.steps,
            config: self.config,
        }
    }

    /// Adds the step of an instruction.
    pub(crate) fn add(&mut self, instruction: &Instruction) -> Result<(), LineProblem> {
        let work = match &instruction.kind {
            InstructionKind::Run { command, mounts } => self.run(command, mounts)?,
            InstructionKind::Copy(copy) => self.copy(copy)?,
            InstructionKind::Directory(path) => self.make_directory(path)?,
            InstructionKind::Arguments(_)
            | InstructionKind::Environment(_)
            | InstructionKind::User(_)
            | InstructionKind::Command(_)
            | InstructionKind::EntryPoint(_)
            | InstructionKind::Shell(_)
            | InstructionKind::Health(_)
            | InstructionKind::Other => {
                self.configure(&instruction.kind)?;
                StepWork::Nothing
            }
        };
        self.steps.push(Step {
            line: instruction.line,
            text: instruction.text.clone(),
            work,
        });
        Ok(())
    }

    /// Instructions that change the config and nothing else.
    fn configure(&mut self, kind: &InstructionKind) -> Result<(), LineProblem> {
        match kind {
            InstructionKind::Arguments(declared) => self.declare(declared)?,
            InstructionKind::Environment(pairs) => self.set(pairs)?,
            InstructionKind::User(user) => {
                let expanded = self.expand(user)?;
                if expanded.is_empty() {
                    let instead = "write USER root if root is meant";
                    return Err(LineProblem::value("the user", user, instead));
                }
                self.config.user = Some(expanded);
            }
            InstructionKind::Command(command) => {
                self.config.command = self.words(command);
                self.has_command = true;
            }
            InstructionKind::EntryPoint(command) => {
                self.config.entry_point = self.words(command);
                // What the base starts would be arguments of another program.
                if !self.has_command {
                    self.config.command.clear();
                }
            }
            InstructionKind::Shell(shell) => self.config.shell.clone_from(shell),
            InstructionKind::Health(health) => self.config.health.clone_from(health),
            InstructionKind::Run { .. }
            | InstructionKind::Copy(_)
            | InstructionKind::Directory(_)
            | InstructionKind::Other => {}
        }
        Ok(())
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            above: &self.config.arguments,
            below: &self.config.environment,
        }
    }

    fn expand(&mut self, text: &str) -> Result<String, LineProblem> {
        self.expand_as(text, self.style)
    }

    fn expand_as(&mut self, text: &str, style: Style) -> Result<String, LineProblem> {
        let mut budget = std::mem::replace(&mut self.budget, Budget::new());
        let expanded = expand(text, style, self.scope(), &mut budget);
        self.budget = budget;
        expanded
    }

    /// ARG: a value that was given, or the default, or the value before the first FROM.
    fn declare(&mut self, declared: &[(String, Option<String>)]) -> Result<(), LineProblem> {
        for (name, default) in declared {
            let value = match (given(self.given, name)?, default) {
                (Some(given), _) => Some(given),
                (None, Some(default)) => Some(self.expand(default)?),
                (None, None) => self.global.get(name).cloned(),
            };
            if let Some(value) = value {
                self.config.arguments.insert(name.clone(), value);
            }
        }
        self.check_environment()
    }

    /// ENV. All values are those from before the instruction.
    fn set(&mut self, pairs: &[(String, String)]) -> Result<(), LineProblem> {
        let mut new = Vec::new();
        for (name, value) in pairs {
            let expanded = self.expand(name)?;
            if expanded.is_empty() || expanded.contains('=') {
                let instead = "use letters, digits and underscores";
                let what = "the name of an environment variable";
                return Err(LineProblem::value(what, name, instead));
            }
            new.push((expanded, self.expand(value)?));
        }
        for (name, value) in new {
            self.config.arguments.remove(&name);
            self.config.environment.insert(name, value);
        }
        self.check_environment()
    }

    fn check_environment(&self) -> Result<(), LineProblem> {
        let all = [&self.config.environment, &self.config.arguments];
        let all = all.into_iter().flatten();
        let bytes: usize = all.map(|(name, value)| name.len() + value.len() + 2).sum();
        if bytes > DOCKERFILE_ENVIRONMENT_BYTES_MAX {
            return Err(LineProblem::TooMuch {
                what: "all environment variables and arguments, in bytes,",
                limit: DOCKERFILE_ENVIRONMENT_BYTES_MAX,
                instead: "put long values into files",
            });
        }
        Ok(())
    }

    fn words(&self, command: &CommandText) -> Vec<String> {
        match command {
            CommandText::Words(words) => words.clone(),
            CommandText::Shell(text) | CommandText::Script(text) => {
                let mut words = self.config.shell.clone();
                words.push(text.clone());
                words
            }
        }
    }

    fn directory(&self) -> &str {
        self.config.directory.as_deref().unwrap_or("/")
    }

    fn run(
        &mut self,
        command: &CommandText,
        mounts: &[MountText],
    ) -> Result<StepWork, LineProblem> {
        let mounts = mounts
            .iter()
            .map(|mount| self.mount(mount))
            .collect::<Result<_, _>>()?;
        let command = match command {
            CommandText::Words(words) => RunCommand::Words(words.clone()),
            CommandText::Shell(text) => RunCommand::Shell {
                shell: self.config.shell.clone(),
                text: text.clone(),
            },
            CommandText::Script(text) => RunCommand::Script(text.clone()),
        };
        let mut environment = self.config.environment.clone();
        environment.extend(self.config.arguments.clone());
        Ok(StepWork::Run {
            command,
            environment,
            user: self.config.user.clone(),
            directory: self.directory().to_owned(),
            mounts,
        })
    }

    fn mount(&mut self, mount: &MountText) -> Result<RunMount, LineProblem> {
        let expanded = self.expand(&mount.target)?;
        let target = absolute(self.directory(), &expanded)?;
        if expanded.is_empty() || target == "/" {
            let instead = "name a directory below the root";
            let what = "the target of a mount";
            return Err(LineProblem::value(what, &mount.target, instead));
        }
        Ok(match &mount.kind {
            MountKind::Cache {
                id,
                sharing,
                mode,
                uid,
                gid,
                read_only,
            } => RunMount::Cache {
                id: match id {
                    Some(id) => self.expand(id)?,
                    None => target.clone(),
                },
                target,
                sharing: *sharing,
                mode: *mode,
                uid: *uid,
                gid: *gid,
                read_only: *read_only,
            },
            MountKind::Temporary { size_bytes } => RunMount::Temporary {
                target,
                size_bytes: *size_bytes,
            },
            MountKind::Bind {
                from,
                source,
                writable,
            } => RunMount::Bind {
                from: from.clone(),
                source: below_root(&self.expand(source)?)?,
                target,
                writable: *writable,
            },
        })
    }

    fn copy(&mut self, copy: &CopyText) -> Result<StepWork, LineProblem> {
        let mut sources = Vec::new();
        for source in &copy.sources {
            let expanded = self.expand(source)?;
            copy_text::check_source(&expanded)?;
            sources.push(below_root(&expanded)?);
        }
        let destination = self.expand(&copy.destination)?;
        let from = match &copy.from {
            CopyFromText::Tree(MountFrom::Context) => CopyFrom::Context,
            CopyFromText::Tree(MountFrom::Stage(stage)) => CopyFrom::Stage(*stage),
            CopyFromText::Tree(MountFrom::Image(image)) => CopyFrom::Image(image.clone()),
            CopyFromText::Inline(files) => {
                let mut inline = Vec::new();
                for file in files {
                    let content = match file.expands {
                        true => self.expand_as(&file.content, DOCUMENT)?,
                        false => file.content.clone(),
                    };
                    let name = file.name.clone();
                    inline.push(InlineFile { name, content });
                }
                copy_text::check_destination(inline.len(), &destination)?;
                CopyFrom::Inline(inline)
            }
        };
        copy_text::check_destination(sources.len(), &destination)?;
        let mode = copy.mode.as_deref();
        let mode = mode.map(|mode| self.expand(mode)).transpose()?;
        let owner = copy.owner.as_deref();
        let owner = owner.map(|owner| self.expand(owner)).transpose()?;
        Ok(StepWork::Copy {
            from,
            sources,
            destination: absolute(self.directory(), &destination)?,
            destination_is_directory: means_directory(&destination),
            owner: owner.filter(|owner| !owner.is_empty()),
            mode: mode.map(|mode| copy_text::read_mode(&mode)).transpose()?,
            unpacks: copy.unpacks,
        })
    }

    fn make_directory(&mut self, path: &str) -> Result<StepWork, LineProblem> {
        let expanded = self.expand(path)?;
        if expanded.is_empty() {
            let instead = "give the variables in it a value";
            return Err(LineProblem::value("the directory", path, instead));
        }
        let path = absolute(self.directory(), &expanded)?;
        self.config.directory = Some(path.clone());
        let user = self.config.user.clone();
        Ok(StepWork::MakeDirectory { path, user })
    }
}

/// The value that whoever builds gave to an argument.
pub(crate) fn given(arguments: &Variables, name: &str) -> Result<Option<String>, LineProblem> {
    let value = arguments.get(name);
    if value.is_some_and(|value| value.contains('\0')) {
        let what = format!("the argument {name} has a NUL in it");
        return Err(LineProblem::invalid(what, "remove it"));
    }
    Ok(value.cloned())
}
