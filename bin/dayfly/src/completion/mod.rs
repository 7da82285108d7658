//! Completing what is typed in a shell: words of the program by a script, ids and names by asking.

pub(crate) mod expected;
pub(crate) mod scripts;
pub(crate) mod values;
