//! The flags of an instruction. Each is taken by whoever knows it; what is left is refused.

use parse_dockerfile::Flag;

use crate::error::{LineProblem, excerpt};

#[derive(Debug)]
pub(crate) struct Flags {
    instruction: &'static str,
    left: Vec<(String, Option<String>)>,
}

impl Flags {
    pub(crate) fn new(instruction: &'static str, flags: &[Flag<'_>]) -> Result<Self, LineProblem> {
        let owned = |flag: &Flag<'_>| {
            let value = flag.value.as_ref().map(|value| value.value.to_string());
            let text = value.as_deref().unwrap_or_default();
            if [&flag.name.value, text]
                .iter()
                .any(|part| part.contains(['"', '\'', '\\', '\0']))
            {
                let what = format!("a quote in the flag --{}", excerpt(&flag.name.value));
                let instead = "use values without spaces, quotes and backslashes in flags";
                return Err(LineProblem::refused(what, instead));
            }
            Ok((flag.name.value.to_string(), value))
        };
        Ok(Self {
            instruction,
            left: flags.iter().map(owned).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn instruction(&self) -> &'static str {
        self.instruction
    }

    /// All values of a flag that may stand more than once.
    pub(crate) fn take_all(&mut self, name: &str) -> Result<Vec<String>, LineProblem> {
        let mut values = Vec::new();
        while let Some(at) = self.left.iter().position(|(flag, _)| flag == name) {
            let (_, value) = self.left.remove(at);
            let value = value.filter(|value| !value.is_empty());
            values.push(value.ok_or_else(|| self.no_value(name))?);
        }
        Ok(values)
    }

    /// The value of a flag that may stand once.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, LineProblem> {
        let mut values = self.take_all(name)?;
        let value = values.pop();
        match values.is_empty() {
            true => Ok(value),
            false => Err(self.twice(name)),
        }
    }

    /// Takes a flag that is on or off.
    pub(crate) fn take_switch(&mut self, name: &str) -> Result<bool, LineProblem> {
        let Some(at) = self.left.iter().position(|(flag, _)| flag == name) else {
            return Ok(false);
        };
        let (_, value) = self.left.remove(at);
        if self.left.iter().any(|(flag, _)| flag == name) {
            return Err(self.twice(name));
        }
        match value.as_deref() {
            None | Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => {
                let instead = "write true or false, or no value";
                Err(LineProblem::value("the value of a flag", other, instead))
            }
        }
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), LineProblem> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let instruction = self.instruction;
        match known_elsewhere(instruction, name) {
            Some(instead) => {
                let what = format!("{instruction} --{name}");
                Err(LineProblem::refused(what, instead))
            }
            None => Err(unknown(instruction, name)),
        }
    }

    fn no_value(&self, name: &str) -> LineProblem {
        let what = format!("the flag --{name} of {} has no value", self.instruction);
        LineProblem::invalid(what, "write --FLAG=VALUE without spaces")
    }

    fn twice(&self, name: &str) -> LineProblem {
        let what = format!("{} has --{name} more than once", self.instruction);
        LineProblem::invalid(what, "keep one of them")
    }
}

/// A flag that nobody knows.
pub(crate) fn unknown(instruction: &'static str, name: &str) -> LineProblem {
    LineProblem::UnknownFlag {
        instruction,
        flag: format!("--{}", excerpt(name)),
    }
}

/// What to do instead of a flag that Docker has and this server has not.
fn known_elsewhere(instruction: &str, name: &str) -> Option<&'static str> {
    match (instruction, name) {
        ("COPY" | "ADD", "parents") => Some("COPY each directory to a destination of its own"),
        ("COPY" | "ADD", "exclude") => Some("name the files in .dockerignore"),
        ("ADD", "checksum" | "keep-git-dir" | "unpack") => {
            Some("fetch and unpack with RUN, or COPY files of the build context")
        }
        ("RUN", "security" | "device") => Some("remove it; a RUN has a machine of its own"),
        _ => None,
    }
}
