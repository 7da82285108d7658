//! Rows and columns.

use unicode_width::UnicodeWidthStr as _;

use crate::{colours, text};

/// Spaces between columns.
const GAP: usize = 2;
/// Columns whose words have colours.
const STATUS_COLUMNS: [&str; 3] = ["STATUS", "STATE", "DECISION"];
/// Room for the name of a project in lines that are not known in advance.
const PROJECT_COLUMNS: usize = 16;

/// A table whose cells may come from anywhere: they are made safe here.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self {
            headers: headers.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(
            cells.len(),
            self.headers.len(),
            "a row has a cell for each column"
        );
        self.rows
            .push(cells.iter().map(|cell| text::visible(cell)).collect());
    }

    /// Puts a column in front that says whose each row is, in a view over all projects.
    pub(crate) fn lead_with_projects<'a>(
        &mut self,
        projects: impl Iterator<Item = &'a Option<String>>,
    ) {
        self.headers.insert(0, "PROJECT");
        for (row, project) in self.rows.iter_mut().zip(projects) {
            row.insert(0, text::visible(project.as_deref().unwrap_or("-")));
        }
    }

    /// For people: a header and aligned columns.
    pub(crate) fn aligned(&self, is_coloured: bool) -> String {
        let headers: Vec<String> = self
            .headers
            .iter()
            .map(|header| (*header).to_owned())
            .collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&headers).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..headers.len())
            .map(|column| {
                let widths = lines.iter().map(|cells| cells[column].width());
                widths.max().unwrap_or(0)
            })
            .collect();
        let mut whole = String::new();
        for cells in lines {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.width()) + GAP);
                line.push_str(&self.painted(cells, column, is_coloured));
                line.push_str(&padding);
            }
            whole.push_str(line.trim_end());
            whole.push('\n');
        }
        whole
    }

    /// A cell, with its colour if it is a status.
    fn painted(&self, cells: &[String], column: usize, is_coloured: bool) -> String {
        let cell = &cells[column];
        let name = match self.headers.as_slice() {
            ["FIELD", "VALUE"] if column == 1 => cells[0].to_uppercase(),
            headers => headers[column].to_owned(),
        };
        let style = colours::of_status(cell)
            .filter(|_| is_coloured && STATUS_COLUMNS.contains(&name.as_str()));
        style.map_or_else(|| cell.clone(), |style| colours::paint(cell, style))
    }

    /// For programs: a line for each row, tabs between cells, no header.
    pub(crate) fn tabbed(&self, is_coloured: bool) -> String {
        let line = |cells: &Vec<String>| {
            let columns = 0..cells.len();
            let painted = columns.map(|column| self.painted(cells, column, is_coloured));
            painted.collect::<Vec<_>>().join("\t") + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

/// A text with room for others of its column. What has two columns on a screen, as many characters of
/// Chinese and Japanese have, counts as two.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(room))
}

/// Whose a line is, with room for others of its column; nothing outside a view over all projects.
pub(crate) fn padded_project(project: Option<&str>) -> String {
    let padded = project.map(|name| padded(&text::visible(name), PROJECT_COLUMNS) + "  ");
    padded.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_for_people_and_tabbed_for_programs() {
        let mut table = Table::new(&["ID", "STATUS"]);
        table.push(vec!["long-id".to_owned(), "run\x1b[2Jning".to_owned()]);
        table.push(vec!["é".to_owned(), String::new()]);
        let aligned = "ID       STATUS\nlong-id  run[2Jning\né\n";
        assert_eq!(table.aligned(false), aligned);
        assert_eq!(table.tabbed(false), "long-id\trun[2Jning\né\t\n");
    }

    #[test]
    fn a_column_can_be_put_in_front() {
        let mut table = Table::new(&["ID"]);
        table.push(vec!["sb-1".to_owned()]);
        table.lead_with_projects(std::iter::once(&Some("team\x1b-a".to_owned())));
        assert_eq!(table.aligned(false), "PROJECT  ID\nteam-a   sb-1\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(&["NAME", "AGE"]);
        table.push(vec!["大阪".to_owned(), "1s".to_owned()]);
        table.push(vec!["e\u{301}ab".to_owned(), "2s".to_owned()]);
        assert_eq!(
            table.aligned(false),
            "NAME  AGE\n大阪  1s\ne\u{301}ab   2s\n"
        );
        assert_eq!(padded("大", 3), "大 ");
    }

    #[test]
    fn statuses_have_colours_and_columns_stay_where_they_are() {
        let mut table = Table::new(&["STATUS", "NAME"]);
        table.push(vec!["running".to_owned(), "running".to_owned()]);
        table.push(vec!["odd".to_owned(), "x".to_owned()]);
        let green = colours::paint("running", colours::of_status("running").unwrap());
        let expected = format!("STATUS   NAME\n{green}  running\nodd      x\n");
        assert_eq!(table.aligned(true), expected);
        assert_eq!(table.tabbed(true), format!("{green}\trunning\nodd\tx\n"));
        let mut table = Table::new(&["FIELD", "VALUE"]);
        table.push(vec!["state".to_owned(), "running".to_owned()]);
        table.push(vec!["name".to_owned(), "running".to_owned()]);
        assert_eq!(
            table.tabbed(true),
            format!("state\t{green}\nname\trunning\n")
        );
    }
}
