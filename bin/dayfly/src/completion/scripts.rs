//! `dayfly completions`: the scripts that shells load.
//!
//! They are the parser's own, which know the words of the program, and ask `dayfly __complete` first,
//! which knows ids and names.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;

const BASH: &str = r#"_dayfly_values() {
    local values
    values=$("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ -z "${values}" ]]; then
        _dayfly "$@"
        return
    fi
    COMPREPLY=( $(compgen -W "${values}" -- "$2") )
    # A path follows.
    if [[ "${values}" == *: ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

"#;

const ZSH: &str = r#"_dayfly() {
    local -a values
    values=(${(f)"$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#values} )); then
        compadd -a values
    else
        _dayfly_words "$@"
    fi
}

"#;

const FISH: &str = r#"
function __fish_dayfly_values
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct)
    dayfly __complete -- $words "$current" 2>/dev/null
end

complete -c dayfly -a "(__fish_dayfly_values)"
"#;

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "dayfly", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => {
            let asking = script.replace("complete -F _dayfly ", "complete -F _dayfly_values ");
            before(&asking, "if [[ \"${BASH_VERSINFO[0]}\" -eq 4", BASH)
        }
        Shell::Zsh => {
            let renamed = script.replacen("\n_dayfly() {", "\n_dayfly_words() {", 1);
            before(&renamed, "if [ \"$funcstack[1]\" = \"_dayfly\" ]", ZSH)
        }
        Shell::Fish => script + FISH,
        // The others have the words of the program alone.
        Shell::Elvish | Shell::PowerShell | _ => script,
    }
}

/// Puts a text before the last place where `mark` stands.
fn before(script: &str, mark: &str, text: &str) -> String {
    match script.rfind(mark) {
        Some(at) => format!("{}{text}{}", &script[..at], &script[at..]),
        None => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_asks_for_values_and_falls_back_on_words() {
        let bash = script(Shell::Bash);
        assert!(bash.contains("\n_dayfly_values() {"), "it is there");
        assert!(!bash.contains("complete -F _dayfly "), "and it is used");
        let zsh = script(Shell::Zsh);
        assert!(zsh.starts_with("#compdef dayfly\n"));
        assert_eq!(zsh.matches("\n_dayfly() {").count(), 1);
        assert_eq!(zsh.matches("\n_dayfly_words() {").count(), 1);
        assert!(script(Shell::Fish).contains("(__fish_dayfly_values)"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let count = script(shell).matches("__complete").count();
            assert_eq!(count, 1, "{shell} asks, and does not offer it");
        }
    }
}
