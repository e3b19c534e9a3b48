//! Reads an index of Python packages: a file's address and digest by project and file name.
//!
//! Both forms of the simple index are read, JSON and HTML.

use reqwest::Url;
use serde::Deserialize;

use super::fetch::{Client, FetchError, Wanted};
use super::origin::OriginName;
use crate::digest::Digest;

const MAX_INDEX: u64 = 64 << 20;
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.1";

/// Fetches the file `name` of a project and returns its digest and size in bytes.
///
/// # Errors
/// [`FetchError`]; [`FetchError::Gone`] also if the index does not list the file.
pub async fn fetch_file(
    client: &Client,
    origin: &OriginName,
    project: &str,
    name: &str,
    expected: &Digest,
    max_bytes: u64,
) -> Result<(Digest, u64), FetchError> {
    if client.store().contains(expected) {
        return Ok((*expected, client.store().size(expected)?));
    }
    let page = format!("{}/", normalize(project));
    let index = Wanted { origin, path: &page, accept: Some(ACCEPT), expected: None, max_bytes: MAX_INDEX };
    let file = Wanted { origin, path: name, accept: None, expected: Some(expected), max_bytes };
    let mut last = None;
    for url in client.urls(&index).await? {
        let result = match client.fetch_url(&url, &index).await {
            Ok((digest, _)) => match find(&client.store().read(&digest)?, &url, name) {
                Some(found) => client.fetch_url(&found, &file).await,
                None => Err(FetchError::Gone { origin: origin.clone(), path: name.to_owned() }),
            },
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.is_about_one_address() => last = Some(error),
            other => return other,
        }
    }
    Err(last.unwrap_or_else(|| FetchError::Gone { origin: origin.clone(), path: name.to_owned() }))
}

/// Returns a project's name in the form that paths of indexes have: lower case, runs of `-_.` as one `-`.
pub fn normalize(project: &str) -> String {
    let mut name = String::new();
    for c in project.chars() {
        match c {
            '-' | '_' | '.' if name.ends_with('-') => {}
            '-' | '_' | '.' => name.push('-'),
            other => name.push(other.to_ascii_lowercase()),
        }
    }
    name
}

#[derive(Deserialize)]
struct Project {
    files: Vec<ProjectFile>,
}

#[derive(Deserialize)]
struct ProjectFile {
    filename: String,
    url: String,
}

/// Returns the address of the file in the index at `page`.
fn find(index: &[u8], page: &Url, name: &str) -> Option<Url> {
    let links: Vec<String> = if index.trim_ascii_start().starts_with(b"{") {
        let project: Project = serde_json::from_slice(index).ok()?;
        project.files.into_iter().filter(|file| file.filename == name).map(|file| file.url).collect()
    } else {
        links(&String::from_utf8_lossy(index))
    };
    links.iter().find_map(|link| {
        let mut url = page.join(link).ok()?;
        url.set_fragment(None);
        // A page from the network must not lead to files of this machine.
        let allowed = matches!(url.scheme(), "http" | "https") || (url.scheme() == "file" && page.scheme() == "file");
        (allowed && url.path_segments()?.next_back() == Some(name)).then_some(url)
    })
}

/// Returns the targets of an HTML page's links.
fn links(page: &str) -> Vec<String> {
    let tags = page.split("<a ").skip(1).filter_map(|rest| rest.split_once('>'));
    let targets = tags.filter_map(|(attributes, _)| {
        let (_, value) = attributes.split_once("href=")?;
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        Some(value[1..].split(quote).next()?.replace("&amp;", "&"))
    });
    targets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_normalized() {
        assert_eq!(normalize("Python_Levenshtein"), "python-levenshtein");
        assert_eq!(normalize("a-._b.c"), "a-b-c");
    }

    #[test]
    fn files_are_found_in_both_forms() {
        let page: Url = "https://index.test/simple/p/".parse().unwrap();
        let html = "<html><a class=\"x\" href=\"../../files/p-1.tar.gz#sha256=00\">p-1.tar.gz</a>\n\
                    <a href='https://files.test/a/p-1-py3-none-any.whl#sha256=11' data-x=\"1\">p</a>\
                    <a href=\"file:///etc/p-2.whl\">p</a>";
        let json = br#" {"meta":{"api-version":"1.0"},"name":"p","files":[{"filename":"p-1.tar.gz",
            "url":"/files/p-1.tar.gz","hashes":{}},{"filename":"p-1-py3-none-any.whl",
            "url":"https://files.test/a/p-1-py3-none-any.whl","hashes":{"sha256":"x"}}]}"#;
        for index in [html.as_bytes(), json] {
            let wheel = find(index, &page, "p-1-py3-none-any.whl").unwrap();
            assert_eq!(wheel.as_str(), "https://files.test/a/p-1-py3-none-any.whl");
            assert_eq!(find(index, &page, "p-1.tar.gz").unwrap().as_str(), "https://index.test/files/p-1.tar.gz");
            assert_eq!(find(index, &page, "p-2.whl"), None);
        }
        assert_eq!(find(b"{", &page, "p"), None);
    }
}
