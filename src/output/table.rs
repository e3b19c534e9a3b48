//! Tables for people, as wide as the terminal at most.

use std::collections::BTreeSet;

use super::{elided, escape};

/// Spaces between columns.
const GAP: usize = 2;

/// A column is not shrunk to less.
const NARROWEST: usize = 16;

/// A table for people: columns as wide as their content, the last one not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    columns: usize,
}

impl Table {
    /// Returns a table with these headings and no rows.
    pub fn new<const COLUMNS: usize>(headings: [&str; COLUMNS]) -> Self {
        Self { rows: vec![headings.map(str::to_owned).to_vec()], columns: COLUMNS }
    }

    /// Returns a table without rows whose headings are known only at run time.
    pub fn with_headings(headings: &[&str]) -> Self {
        let row = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { rows: vec![row], columns: headings.len() }
    }

    /// Adds a row; cells are escaped. Missing cells are empty, surplus ones are left out.
    pub fn row<I: IntoIterator<Item = S>, S: AsRef<str>>(&mut self, cells: I) {
        let mut row: Vec<String> =
            cells.into_iter().take(self.columns).map(|cell| escape(cell.as_ref()).into_owned()).collect();
        row.resize(self.columns, String::new());
        self.rows.push(row);
    }

    /// Tells whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Returns the table's lines, each with its line break, however wide they are.
    pub fn render(&self) -> String {
        self.block(&(0..self.columns).collect::<Vec<_>>(), &self.widths())
    }

    /// Returns the table's lines, each of at most so many characters. Wide columns are shrunk: sentences wrap, and words
    /// lose their middles. A table that is still too wide becomes several, each with the columns that tell rows apart, or with
    /// row numbers if these columns leave no room. Lines are longer only if different rows would look equal otherwise.
    pub fn fitted(&self, width: usize) -> String {
        let (natural, telling) = (self.widths(), self.telling());
        let narrowest: Vec<usize> =
            (0..self.columns).map(|column| self.narrowest(column, natural[column], column < telling)).collect();
        let numbered = || {
            let table = self.numbered();
            let widths = table.widths();
            let narrowest: Vec<usize> = widths.iter().take(1).chain(&narrowest).copied().collect();
            table.divided(&widths, &narrowest, 1, width)
        };
        self.divided(&natural, &narrowest, telling, width).or_else(numbered).unwrap_or_else(|| self.render())
    }

    /// Returns the table with a first column of row numbers.
    fn numbered(&self) -> Self {
        let number = |(index, row): (usize, &Vec<String>)| {
            let number = if index == 0 { "#".to_owned() } else { index.to_string() };
            std::iter::once(number).chain(row.iter().cloned()).collect()
        };
        Self { rows: self.rows.iter().enumerate().map(number).collect(), columns: self.columns + 1 }
    }

    /// Returns the lines of [`Table::fitted`], given the number of first columns that tell rows apart. `None` if these leave no
    /// room for another column.
    fn divided(&self, natural: &[usize], narrowest: &[usize], telling: usize, width: usize) -> Option<String> {
        let mut widths = natural.to_vec();
        while total(&widths) > width {
            let wide = (0..self.columns).filter(|column| widths[*column] > narrowest[*column]);
            let Some(widest) = wide.max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
        }
        if total(&widths) <= width {
            return Some(self.block(&(0..self.columns).collect::<Vec<_>>(), &widths));
        }
        let keys = self.keys(telling, &widths, width)?;
        let mut blocks = self.blocks(&keys, &widths, width);
        // What the shrunk columns of several tables leave free, the first ones get back.
        for column in 0..self.columns {
            while blocks.len() > 1 && widths[column] < natural[column] {
                widths[column] += 1;
                let wider = self.blocks(&keys, &widths, width);
                let fits = |block: &Vec<usize>| total_of(block, &widths) <= width;
                let has_same_keys = self.keys(telling, &widths, width).as_ref() == Some(&keys);
                if !has_same_keys || wider.len() != blocks.len() || !wider.iter().all(fits) {
                    widths[column] -= 1;
                    break;
                }
                blocks = wider;
            }
        }
        let blocks: Vec<String> = blocks.iter().map(|block| self.block(block, &widths)).collect();
        Some(blocks.join("\n"))
    }

    /// Returns the columns of each table, given those that all have in common.
    fn blocks(&self, keys: &[usize], widths: &[usize], width: usize) -> Vec<Vec<usize>> {
        let mut blocks = Vec::new();
        let mut block = keys.to_vec();
        for column in (0..self.columns).filter(|column| !keys.contains(column)) {
            // The common columns alone tell nothing.
            if block.len() > keys.len() && total_of(block.iter().chain([&column]), widths) > width {
                blocks.push(std::mem::replace(&mut block, keys.to_vec()));
            }
            block.push(column);
        }
        blocks.push(block);
        blocks.iter_mut().for_each(|block| block.sort_unstable());
        blocks
    }

    /// Returns the number of first columns that tell apart all rows that differ.
    fn telling(&self) -> usize {
        let rows = self.rows.get(1..).unwrap_or_default();
        let seen = |columns: usize| rows.iter().map(|row| &row[..columns]).collect::<BTreeSet<&[String]>>().len();
        let all = seen(self.columns);
        (1..=self.columns).find(|columns| seen(*columns) == all).unwrap_or(0)
    }

    /// Returns the columns that all tables have in common: these first columns, which tell rows apart. If they take more than
    /// half of the width, columns that are equal in all rows are left out. `None` if the rest leaves no room for another column.
    fn keys(&self, telling: usize, widths: &[usize], width: usize) -> Option<Vec<usize>> {
        let rows = self.rows.get(1..).unwrap_or_default();
        let all: Vec<usize> = (0..telling).collect();
        if total_of(&all, widths) <= width / 2 {
            return Some(all);
        }
        let varies = |column: &usize| rows.iter().any(|row| row[*column] != rows[0][*column]);
        let varying: Vec<usize> = all.into_iter().filter(varies).collect();
        if varying.is_empty() {
            return Some((0..telling.min(1)).collect());
        }
        let widest = (0..self.columns).filter(|column| !varying.contains(column)).map(|column| widths[column]).max();
        (total_of(&varying, widths) + GAP + widest.unwrap_or(0) <= width).then_some(varying)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    /// Returns the least width of a column of this natural width. If the column tells rows apart, its different cells stay
    /// different at that width.
    fn narrowest(&self, column: usize, natural: usize, tells: bool) -> usize {
        let heading = self.rows.first().map_or(0, |headings| headings[column].chars().count());
        let least = natural.min(NARROWEST.max(heading));
        if !tells {
            return least;
        }
        let cells: BTreeSet<&str> = self.rows.iter().skip(1).map(|row| row[column].as_str()).collect();
        let differ = |width: &usize| {
            let shown: BTreeSet<Vec<String>> = cells.iter().map(|cell| wrapped(cell, *width)).collect();
            shown.len() == cells.len()
        };
        (least..natural).find(differ).unwrap_or(natural)
    }

    /// Returns the lines of these columns.
    fn block(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<Vec<String>> =
                columns.iter().map(|column| wrapped(&row[*column], widths[*column])).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(1) {
                let mut written = String::new();
                for (cell, column) in cells.iter().zip(columns) {
                    let part = cell.get(line).map_or("", String::as_str);
                    written.push_str(part);
                    written
                        .extend(std::iter::repeat_n(' ', widths[*column].saturating_sub(part.chars().count()) + GAP));
                }
                text.push_str(written.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// Returns the width of these columns, with the gaps between them.
fn total_of<'a>(columns: impl IntoIterator<Item = &'a usize>, widths: &[usize]) -> usize {
    total(&columns.into_iter().map(|column| widths[*column]).collect::<Vec<_>>())
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * GAP
}

/// Returns the text in lines of at most so many characters, broken at spaces. Longer words lose their middles.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word = elided(word, width);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["name", "n"]);
        table.row(["longer name", "1"]);
        table.row(["x"]);
        assert_eq!(table.render(), "name         n\nlonger name  1\nx\n");
        assert_eq!(table.fitted(80), table.render());
    }

    #[test]
    fn wide_words_lose_their_middles_and_sentences_wrap() {
        let mut table = Table::new(["task", "n", "what is wrong"]);
        let id = format!("owner_name-1.0__abc_def__{}_cafe", "Test".repeat(20));
        table.row([id.as_str(), "17", "there is no lock of this repository, and nothing says where its sources are"]);
        assert_eq!(
            table.fitted(60),
            "task                         n   what is wrong\n\
             owner_name-1.\u{2026}TestTest_cafe  17  there is no lock of this\n\
             \u{20}                                repository, and nothing\n\
             \u{20}                                says where its sources are\n"
        );
        for width in 50..200 {
            assert!(widest(&table.fitted(width)) <= width, "{width}");
        }
        assert!(table.render().contains(&id));
    }

    #[test]
    fn many_narrow_columns_become_several_tables_with_the_first_column() {
        let mut table = Table::new(["model", "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"]);
        table.row(["gold", "1", "2", "3"]);
        let fitted = table.fitted(30);
        assert_eq!(fitted, "model  aaaaaaaaaa  bbbbbbbbbb\ngold   1           2\n\nmodel  cccccccccc\ngold   3\n");
    }

    #[test]
    fn several_tables_shorten_no_word_that_there_is_room_for() {
        let mut table = Table::new(["run", "command", "model", "tasks", "score", "started", "state", "MiB"]);
        for run in ["validate-20261126T151906", "score-20261126T152152"] {
            table.row([
                run,
                "validate",
                "careful, hasty",
                "100",
                "1/1 methods",
                "2026-11-26T15:19:06",
                "finished",
                "0.3",
            ]);
        }
        let fitted = table.fitted(80);
        assert!(widest(&fitted) <= 80 && !fitted.contains('\u{2026}') && fitted.contains("T15:19:06"), "{fitted}");
        assert_eq!(fitted.matches("run  ").count(), 2, "{fitted}");
    }

    /// A run of a default id, models and tracks take more than half of the width.
    #[test]
    fn no_table_is_without_what_tells_rows_apart() {
        let values = ["Redundant%", "ExecFail%", "CmplFail%", "HrnsFail%", "CoverageGold", "MutationGold", "Coverage"];
        let mut headings = vec!["run", "model", "track"];
        headings.extend(values);
        for runs in [&["score-20261126T152152"][..], &["score-20261126T152152", "score-20261126T161906"]] {
            let mut table = Table::with_headings(&headings);
            for &run in runs {
                for model in ["anthropic-claude-sonnet", "openai-gpt-codex", "gold"] {
                    for track in ["test_update", "test_generation"] {
                        table.row([run, model, track].into_iter().chain(["100.0"; 7]));
                    }
                }
            }
            for width in [72, 80, 100, 140] {
                let fitted = table.fitted(width);
                assert!(widest(&fitted) <= width, "{width}: {fitted}");
                for block in fitted.split("\n\n") {
                    let heading = block.lines().next().unwrap();
                    assert!(heading.contains("model") && heading.contains("track"), "{width}: {fitted}");
                    // Values are equal, so only what tells rows apart can differ.
                    let rows: BTreeSet<&str> = block.lines().collect();
                    assert_eq!(rows.len(), block.lines().count(), "{width}: {fitted}");
                }
                // A run of all rows stands in one of several tables.
                let repeated = fitted.matches("run ").count();
                assert!(runs.len() > 1 || repeated == 1 || width == 140, "{width}: {fitted}");
            }
        }
    }

    /// At their narrowest both models would be `anthropi…-sonnet`.
    #[test]
    fn different_names_stay_different_at_every_width() {
        let mut table =
            Table::new(["run", "model", "track", "Success%", "Redundant%", "ExecFail%", "CmplFail%", "MutationGold"]);
        for model in ["anthropic-claude-3-5-sonnet", "anthropic-claude-3-7-sonnet"] {
            for run in ["score-20261126T152152", "score-20261126T161906"] {
                for track in ["test_update", "test_generation"] {
                    table.row([run, model, track].into_iter().chain(["100.0"; 5]));
                }
            }
        }
        for width in 30..200 {
            let fitted = table.fitted(width);
            assert!(widest(&fitted) <= width, "{width}: {fitted}");
            for block in fitted.split("\n\n") {
                let rows: BTreeSet<&str> = block.lines().collect();
                assert_eq!(rows.len(), block.lines().count(), "{width}: {fitted}");
            }
            // Names that leave no room for values stand once, beside row numbers.
            let heading = if fitted.starts_with('#') { "#" } else { "model" };
            assert!(fitted.split("\n\n").all(|block| block.lines().next().unwrap().contains(heading)), "{fitted}");
        }
        assert!(table.fitted(60).starts_with("#  run "));
        assert_eq!(table.fitted(usize::MAX), table.render());
    }

    #[test]
    fn several_tables_repeat_what_tells_rows_apart() {
        let mut table = Table::new(["run", "track", "aaaaaaaaaa", "bbbbbbbbbb"]);
        table.row(["r", "old", "1", "2"]);
        table.row(["r", "new", "3", "4"]);
        assert_eq!(
            table.fitted(30),
            "run  track  aaaaaaaaaa\nr    old    1\nr    new    3\n\nrun  track  bbbbbbbbbb\nr    old    2\nr    new    4\n"
        );
    }
}
