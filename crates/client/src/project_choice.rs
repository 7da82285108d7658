//! Whose things a call is about.

use reqwest::Url;

/// Whose things a call is about. All but the own project need the key of an operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProjectChoice {
    /// The project of the key.
    #[default]
    Own,
    One(String),
    /// Each item says whose it is.
    All,
}

impl ProjectChoice {
    pub(crate) fn add_to(&self, url: &mut Url) {
        match self {
            Self::Own => {}
            Self::One(project) => {
                url.query_pairs_mut().append_pair("project", project);
            }
            Self::All => {
                url.query_pairs_mut().append_pair("all_projects", "true");
            }
        }
    }
}
