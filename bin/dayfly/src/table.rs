//! Rows and columns.

use crate::text;

/// A table whose cells may come from anywhere: they are made safe here.
#[derive(Debug)]
pub(crate) struct Table {
    headers: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headers: &'static [&'static str]) -> Self {
        Self {
            headers,
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

    /// For people: a header and aligned columns.
    pub(crate) fn aligned(&self) -> String {
        let headers: Vec<String> = self
            .headers
            .iter()
            .map(|header| (*header).to_owned())
            .collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&headers).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..headers.len())
            .map(|column| {
                lines
                    .iter()
                    .map(|cells| cells[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut whole = String::new();
        for cells in lines {
            let padded: Vec<String> = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            whole.push_str(padded.join("  ").trim_end());
            whole.push('\n');
        }
        whole
    }

    /// For programs: a line for each row, tabs between cells, no header.
    pub(crate) fn tabbed(&self) -> String {
        self.rows
            .iter()
            .map(|cells| cells.join("\t") + "\n")
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_for_people_and_tabbed_for_programs() {
        let mut table = Table::new(&["ID", "STATUS"]);
        table.push(vec!["long-id".to_owned(), "run\x1b[2Jning".to_owned()]);
        table.push(vec!["é".to_owned(), String::new()]);
        assert_eq!(table.aligned(), "ID       STATUS\nlong-id  run[2Jning\né\n");
        assert_eq!(table.tabbed(), "long-id\trun[2Jning\né\t\n");
    }
}
