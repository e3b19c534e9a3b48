//! Reads facts of a Java source before it is compiled: its package and its types.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Returns the package that a compilation unit declares, empty for the unnamed one.
///
/// Comments and annotations before the declaration are skipped. Source: Java Language Specification §7.3–7.4.
pub fn package_of(source: &[u8]) -> String {
    let text = String::from_utf8_lossy(source);
    let mut scanner = Scanner { rest: text.trim_start_matches('\u{feff}') };
    let mut depth = 0usize;
    loop {
        match scanner.next() {
            // Annotations of a package declaration may contain anything between parentheses.
            Some("(") => depth += 1,
            Some(")") => depth = depth.saturating_sub(1),
            Some(_) if depth > 0 => {}
            Some("package") => return scanner.name(),
            // After these no package declaration can follow.
            Some("import" | "class" | "interface" | "enum" | "module" | "{") | None => return String::new(),
            Some(_) => {}
        }
    }
}

/// Returns the simple names of the types that a compilation unit declares, top-level and nested. The result may contain
/// a few names too many, which does no harm to callers.
///
/// Resolves Unicode escapes. Source: Java Language Specification §3.3, §7.6.
pub fn declared_types(source: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(source);
    let text = unescaped(&text);
    let mut scanner = Scanner { rest: text.trim_start_matches('\u{feff}') };
    let mut types = BTreeSet::new();
    let mut declares = false;
    while let Some(token) = scanner.next() {
        if declares && token.starts_with(is_word) {
            types.insert(token.to_owned());
        }
        declares = matches!(token, "class" | "interface" | "enum" | "record");
    }
    types
}

/// Tells whether a source contains one of the words, comments and literals included.
pub fn mentions(source: &[u8], words: &BTreeSet<String>) -> bool {
    let text = String::from_utf8_lossy(source);
    unescaped(&text).split(|c| !is_word(c)).any(|word| words.contains(word))
}

/// Replaces escapes such as `\u0041`, which may be anywhere in a source.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        plain.push_str(&rest[..at]);
        let digits = rest[at + 1..].trim_start_matches('u');
        let code = digits.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code.and_then(char::from_u32) {
            Some(c) => {
                plain.push(c);
                rest = &digits[4..];
            }
            None => {
                plain.push_str("\\u");
                rest = &rest[at + 2..];
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Returns the next word or punctuation mark outside comments; literals count as marks.
    fn next(&mut self) -> Option<&'a str> {
        self.skip_blank();
        let first = self.rest.chars().next()?;
        let length = if is_word(first) {
            self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())
        } else if self.rest.starts_with(TEXT_BLOCK) {
            text_block_length(self.rest)
        } else if first == '"' || first == '\'' {
            literal_length(self.rest, first)
        } else {
            first.len_utf8()
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }

    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.find("*/").map_or("", |end| &comment[end + 2..]);
            } else {
                return;
            }
        }
    }

    /// Returns a qualified name up to its semicolon.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(token) = self.next() {
            if token != "." && !token.chars().all(is_word) {
                break;
            }
            name.push_str(token);
        }
        name
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The delimiter of text blocks. Source: Java Language Specification §3.10.6.
const TEXT_BLOCK: &str = "\"\"\"";

/// Returns the length of a text block, up to and including its end.
fn text_block_length(text: &str) -> usize {
    let mut at = TEXT_BLOCK.len();
    while let Some(found) = text[at..].find(['\\', '"']) {
        at += found;
        if text[at..].starts_with(TEXT_BLOCK) {
            return at + TEXT_BLOCK.len();
        }
        let escaped = if text[at..].starts_with('\\') { text[at + 1..].chars().next() } else { None };
        at += 1 + escaped.map_or(0, char::len_utf8);
    }
    text.len()
}

/// Returns the length of a literal that begins with `quote`, including its end, or up to the end of its line. So an
/// unclosed quote, as in a source that does not compile, hides at most its line.
fn literal_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped && !matches!(c, '\n' | '\r') => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return index + c.len_utf8(),
            '\n' | '\r' => return index,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
