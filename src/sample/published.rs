//! A sample's tasks in the benchmark's published form. Source: protocol §5.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::git::{RevisionPair, commit_time};
use super::{Miniature, SampleRepository};
use crate::digest::Digest;
use crate::task::{RepositoryPath, Side, Track};

impl SampleRepository {
    /// Returns the text of the file that `import` reads; `revisions` as [`SampleRepository::write_git`] returned them.
    pub fn published(&self, revisions: &[RevisionPair]) -> String {
        // A reserved name: no server is contacted, because the sources come from a local directory.
        let address = format!("https://example.invalid/{}", self.name);
        let tasks = |track: Track| -> Vec<Value> {
            let numbered = self.miniatures.iter().zip(revisions).enumerate();
            let of_track = numbered.filter(|(_, (miniature, _))| miniature.track == track);
            of_track.map(|(index, (miniature, pair))| self.task(&address, index, miniature, pair)).collect()
        };
        let value = json!({
            "project_name": self.name.file_stem(),
            "display_name": self.name,
            "github_url": address,
            "git_clone_url": format!("{address}.git"),
            "java_version": self.jdk,
            "version": "1",
            "tracks": {
                "test_update": tasks(Track::TestUpdate),
                "test_generation": tasks(Track::TestGeneration),
            },
        });
        format!("{value:#}\n")
    }

    fn task(&self, address: &str, index: usize, miniature: &Miniature, pair: &RevisionPair) -> Value {
        let comparison = format!("{address}/compare/{}...{}", pair.rev1, pair.rev2);
        let test_method_urls: BTreeMap<_, _> = miniature
            .methods
            .iter()
            .filter_map(|method| {
                let declaration = format!(" {}(", method.id.method());
                let anchor = anchor(miniature, &miniature.test_file, &declaration)?;
                Some((method.id.as_str(), format!("{comparison}{anchor}")))
            })
            .collect();
        let dependency_method_urls: BTreeMap<_, _> = miniature
            .focal
            .iter()
            .filter_map(|focal| {
                let anchor = anchor(miniature, &focal.file, &focal.anchor)?;
                Some((focal.method.as_str(), format!("{comparison}{anchor}")))
            })
            .collect();
        json!({
            "task_id": format!("{}__{}", self.name.file_stem(), miniature.name),
            "rev1": pair.rev1,
            "rev2": pair.rev2,
            "rev1_date": date(commit_time(index, Side::Old)),
            "rev2_date": date(commit_time(index, Side::New)),
            "git_diff_url": comparison,
            "test_file": miniature.test_file,
            "test_methods": miniature.methods.iter().map(|method| &method.id).collect::<Vec<_>>(),
            "dependency_methods": miniature.focal.iter().map(|focal| &focal.method).collect::<Vec<_>>(),
            "dependency_method_urls": dependency_method_urls,
            "test_method_urls": test_method_urls,
            "n_changes": miniature.methods.len(),
        })
    }
}

/// Returns `#diff-<sha256 of the path><R or L><line>` of the first line with the text, searching the new file first.
fn anchor(miniature: &Miniature, path: &RepositoryPath, text: &str) -> Option<String> {
    [(Side::New, 'R'), (Side::Old, 'L')].into_iter().find_map(|(side, letter)| {
        let content = String::from_utf8_lossy(miniature.files(side).get(path)?);
        let line = content.lines().position(|line| line.contains(text))? + 1;
        Some(format!("#diff-{}{letter}{line}", Digest::of(path.as_str().as_bytes()).hex()))
    })
}

fn date(seconds: i64) -> String {
    let timestamp = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    timestamp.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_published_like_the_benchmark() {
        let demo = SampleRepository::demo().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let revisions = demo.write_git(&directory.path().join("git")).unwrap();
        insta::assert_snapshot!(demo.published(&revisions));
    }
}
