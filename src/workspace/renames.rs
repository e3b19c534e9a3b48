//! Finds renamed files exactly as git does: equal contents first, then files with a unique base name, then the most
//! similar pairs. Source: git's `diffcore-rename.c` and `diffcore-delta.c` (2.47).
//!
//! libgit2 measures similarity in another way, and differs from git on real histories.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The highest similarity.
const MOST_SCORE: u64 = 60_000;
/// The least similarity of `--find-renames=50%`.
const LEAST_SCORE: u64 = MOST_SCORE / 2;
/// The least similarity of a pair that is compared only because of its unique base name: halfway between the general
/// one and equality.
const LEAST_BASENAME_SCORE: u64 = LEAST_SCORE + (MOST_SCORE - LEAST_SCORE) / 2;
/// How many candidates are kept for each new file.
const CANDIDATES: usize = 4;
/// With more pairs than the square of this number, only equal contents and base names are compared: `diff.renameLimit`.
const RENAME_LIMIT: usize = 1000;
/// How many equal old files are considered for a new one.
const MOST_EQUAL: usize = 100;

/// A file that only one side has.
#[derive(Clone, Debug)]
pub(super) struct LoneFile {
    /// Its path.
    pub(super) path: String,
    /// Git's id of its content.
    pub(super) id: String,
}

/// Returns the index of each renamed file's old file, by the new file's index. Both lists are in git's order. `content`
/// returns an old (`false`) or new (`true`) file's bytes; `None` if they are missing.
pub(super) fn find<E>(
    old: &[LoneFile],
    new: &[LoneFile],
    content: &mut dyn FnMut(bool, usize) -> Result<Option<Vec<u8>>, E>,
) -> Result<BTreeMap<usize, usize>, E> {
    let mut search = Search { old, new, found: BTreeMap::new(), used: BTreeSet::new(), spans: HashMap::new() };
    search.equal();
    search.by_base_name(content)?;
    search.by_similarity(content)?;
    Ok(search.found)
}

/// The pieces of a file's content, which are lines cut at 64 bytes, with the total bytes of each kind of piece.
struct Spans {
    bytes: u64,
    counts: BTreeMap<u32, u64>,
}

struct Search<'a> {
    old: &'a [LoneFile],
    new: &'a [LoneFile],
    found: BTreeMap<usize, usize>,
    used: BTreeSet<usize>,
    spans: HashMap<(bool, usize), Option<Spans>>,
}

type Content<'c, E> = &'c mut dyn FnMut(bool, usize) -> Result<Option<Vec<u8>>, E>;

impl Search<'_> {
    fn equal(&mut self) {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, file) in self.old.iter().enumerate() {
            by_id.entry(&file.id).or_default().push(index);
        }
        for (index, file) in self.new.iter().enumerate() {
            let candidates = by_id.get(file.id.as_str()).map_or(&[][..], Vec::as_slice);
            let unused = candidates.iter().take(MOST_EQUAL + 1).filter(|old| !self.used.contains(old));
            // The first of the best counts. Among equals, an unchanged base name decides.
            let mut best: Option<(bool, usize)> = None;
            for &old in unused {
                let same = base_name(&self.old[old].path) == base_name(&file.path);
                if best.is_none_or(|(best, _)| same && !best) {
                    best = Some((same, old));
                }
            }
            if let Some((_, old)) = best {
                self.take(index, old);
            }
        }
    }

    fn by_base_name<E>(&mut self, content: Content<'_, E>) -> Result<(), E> {
        let alone = |files: &[LoneFile], free: &dyn Fn(usize) -> bool| {
            let mut names: HashMap<String, Option<usize>> = HashMap::new();
            for (index, file) in files.iter().enumerate().filter(|(index, _)| free(*index)) {
                let name = base_name(&file.path).to_owned();
                names.entry(name).and_modify(|known| *known = None).or_insert(Some(index));
            }
            names
        };
        let olds = alone(self.old, &|index| !self.used.contains(&index));
        let news = alone(self.new, &|index| !self.found.contains_key(&index));
        let mut pairs: Vec<(usize, usize)> =
            olds.into_iter().filter_map(|(name, old)| Some((old?, (*news.get(&name)?)?))).collect();
        pairs.sort_unstable();
        for (old, new) in pairs {
            if self.score(old, new, LEAST_BASENAME_SCORE, content)? >= LEAST_BASENAME_SCORE {
                self.take(new, old);
            }
        }
        Ok(())
    }

    fn by_similarity<E>(&mut self, content: Content<'_, E>) -> Result<(), E> {
        let olds: Vec<usize> = (0..self.old.len()).filter(|index| !self.used.contains(index)).collect();
        let news: Vec<usize> = (0..self.new.len()).filter(|index| !self.found.contains_key(index)).collect();
        if olds.len().saturating_mul(news.len()) > RENAME_LIMIT * RENAME_LIMIT {
            return Ok(());
        }
        let mut all: Vec<Pair> = Vec::new();
        for &new in &news {
            let mut best: Vec<Pair> = Vec::new();
            for &old in &olds {
                let score = self.score(old, new, LEAST_SCORE, content)?;
                let same = base_name(&self.old[old].path) == base_name(&self.new[new].path);
                let pair = Pair { score, same, old, new };
                if best.len() < CANDIDATES {
                    best.push(pair);
                } else {
                    // The first of the worst is replaced, as in git.
                    let worst = (1..CANDIDATES)
                        .fold(0, |worst, at| if best[at].rank() < best[worst].rank() { at } else { worst });
                    if best[worst].rank() < pair.rank() {
                        best[worst] = pair;
                    }
                }
            }
            all.extend(best);
        }
        // Stable: among equals the earlier new file comes first.
        all.sort_by_key(|pair| std::cmp::Reverse(pair.rank()));
        for pair in all {
            if pair.score < LEAST_SCORE {
                break;
            }
            if !self.found.contains_key(&pair.new) && !self.used.contains(&pair.old) {
                self.take(pair.new, pair.old);
            }
        }
        Ok(())
    }

    fn take(&mut self, new: usize, old: usize) {
        self.found.insert(new, old);
        self.used.insert(old);
    }

    /// Returns the similarity of two files; 0 if their sizes show that it is less than `least`.
    fn score<E>(&mut self, old: usize, new: usize, least: u64, content: Content<'_, E>) -> Result<u64, E> {
        for key in [(false, old), (true, new)] {
            if let Entry::Vacant(vacant) = self.spans.entry(key) {
                vacant.insert(content(key.0, key.1)?.map(|bytes| spans(&bytes)));
            }
        }
        let (Some(Some(old)), Some(Some(new))) = (self.spans.get(&(false, old)), self.spans.get(&(true, new))) else {
            return Ok(0);
        };
        let (larger, smaller) = (old.bytes.max(new.bytes), old.bytes.min(new.bytes));
        if larger == 0 || larger * (MOST_SCORE - least) < (larger - smaller) * MOST_SCORE {
            return Ok(0);
        }
        let copied: u64 =
            old.counts.iter().map(|(piece, bytes)| new.counts.get(piece).map_or(0, |other| *bytes.min(other))).sum();
        Ok(copied * MOST_SCORE / larger)
    }
}

struct Pair {
    score: u64,
    same: bool,
    old: usize,
    new: usize,
}

impl Pair {
    fn rank(&self) -> (u64, bool) {
        (self.score, self.same)
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The modulus of git's piece numbers.
const PIECES: u32 = 107_927;

fn spans(content: &[u8]) -> Spans {
    // Git takes a file with a NUL among its first bytes for binary.
    let is_text = !content[..content.len().min(8000)].contains(&0);
    let mut counts = BTreeMap::new();
    let (mut one, mut other, mut length) = (0u32, 0u32, 0u64);
    let mut add = |one: u32, other: u32, length: u64| {
        let piece = one.wrapping_add(other.wrapping_mul(0x61)) % PIECES;
        *counts.entry(piece).or_insert(0) += length;
    };
    for (index, &byte) in content.iter().enumerate() {
        if is_text && byte == b'\r' && content.get(index + 1) == Some(&b'\n') {
            continue;
        }
        let before = one;
        one = (one << 7) ^ (other >> 25);
        other = (other << 7) ^ (before >> 25);
        one = one.wrapping_add(u32::from(byte));
        length += 1;
        if length >= 64 || byte == b'\n' {
            add(one, other, length);
            (one, other, length) = (0, 0, 0);
        }
    }
    if length > 0 {
        add(one, other, length);
    }
    Spans { bytes: content.len() as u64, counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<(String, String)> {
        let files = |list: &[(&str, &str)]| -> Vec<LoneFile> {
            list.iter().map(|(path, text)| LoneFile { path: (*path).to_owned(), id: (*text).to_owned() }).collect()
        };
        let mut content = |is_new: bool, index: usize| -> Result<Option<Vec<u8>>, std::convert::Infallible> {
            Ok(Some(if is_new { new[index].1 } else { old[index].1 }.as_bytes().to_vec()))
        };
        let Ok(renames) = find(&files(old), &files(new), &mut content);
        renames.into_iter().map(|(new_at, old_at)| (old[old_at].0.to_owned(), new[new_at].0.to_owned())).collect()
    }

    #[test]
    fn files_are_renamed_as_git_has_it() {
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        let text = "one\ntwo\nthree\nfour\n";
        assert_eq!(found(&[("a/A.java", text)], &[("b/A.java", text)]), [pair("a/A.java", "b/A.java")]);
        // Of equal files the one of the same base name.
        assert_eq!(
            found(&[("a/B.java", text), ("a/C.java", text)], &[("b/C.java", text)]),
            [pair("a/C.java", "b/C.java")]
        );
        let half = "one\ntwo\nthirteen\nfourteen\n";
        assert_eq!(found(&[("a/A.java", text)], &[("b/B.java", half)]), [], "less than half is kept");
        let most = "one\ntwo\nthree\nfive\n";
        assert_eq!(found(&[("a/A.java", text)], &[("b/B.java", most)]), [pair("a/A.java", "b/B.java")]);
        // The more similar one wins where one old file could be two.
        assert_eq!(
            found(&[("a/A.java", text)], &[("b/B.java", most), ("b/C.java", "one\ntwo\nthree\nfour\nx\n")]),
            [pair("a/A.java", "b/C.java")]
        );
        assert_eq!(found(&[("a/A.java", "")], &[("b/B.java", "x\n")]), []);
    }
}
