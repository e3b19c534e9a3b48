//! Walks directories, archives and encodings within limits, and hands every content to the [`Hunt`].

mod archives;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use fs_err as fs;
use liblzma::read::XzDecoder;
use liblzma::stream::Stream;
use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::hunt::{Hit, Hunt};
use super::normal::{added, patched, resolved, unescaped};
use super::packs::{self, Object};
use super::places::Repositories;
use super::streams::{Format, HEAD_BYTES, Meter, Metered};
use super::{AuditError, AuditLimits, AuditReport, Finding, Kind, NotLookedAt, base64};
use crate::task::TaskId;
use crate::workspace::class_file::ClassFacts;

/// The bytes that a damaged stream of zlib must hold to count as one.
const LEAST_INFLATED_BYTES: u64 = 4 << 10;
/// The most memory for decompressing xz; `xz -9` needs 65 MiB.
const MOST_XZ_MEMORY: u64 = 72 << 20;
/// The bytes at a zip archive's end that hold its directory's place.
const ZIP_END_BYTES: usize = 66 << 10;

/// One audit.
pub struct Scanner<'a> {
    hunt: &'a Hunt,
    own: &'a BTreeSet<TaskId>,
    limits: AuditLimits,
    meter: Rc<Meter>,
    temporary: PathBuf,
    packs: usize,
    repositories: Repositories,
    findings: BTreeMap<(String, Option<TaskId>, &'static str, String), Finding>,
    skipped: BTreeSet<NotLookedAt>,
    report: AuditReport,
}

impl<'a> Scanner<'a> {
    /// Starts an audit for the tasks `own`. `temporary` is a directory for indexes of packs.
    pub fn new(hunt: &'a Hunt, own: &'a BTreeSet<TaskId>, limits: AuditLimits, temporary: &Path) -> Self {
        let deadline = Instant::now().checked_add(limits.time);
        Self {
            hunt,
            own,
            limits,
            meter: Rc::new(Meter::new(limits.total_bytes, deadline)),
            temporary: temporary.to_owned(),
            packs: 0,
            repositories: Repositories::default(),
            findings: BTreeMap::new(),
            skipped: BTreeSet::new(),
            report: AuditReport::default(),
        }
    }

    /// Looks at a file or at everything in a directory. Places are relative to `base`.
    ///
    /// # Errors
    /// [`AuditError::Io`] if the path itself can't be read; what can't be read below it is not looked at.
    pub fn path(&mut self, path: &Path, base: &Path) -> Result<(), AuditError> {
        fs::symlink_metadata(path)?;
        // The user named this path, so a link there is the user's.
        self.everything(fs::canonicalize(path)?, &fs::canonicalize(base)?);
        Ok(())
    }

    /// As [`Scanner::path`] for an entry of the directory `base`: a link is looked at, not followed.
    ///
    /// # Errors
    /// [`AuditError::Io`] if the directory can't be read.
    pub fn entry_of(&mut self, path: &Path, base: &Path) -> Result<(), AuditError> {
        let base = fs::canonicalize(base)?;
        let path = path.file_name().map_or_else(|| base.clone(), |name| base.join(name));
        self.everything(path, &base);
        Ok(())
    }

    fn everything(&mut self, path: PathBuf, base: &Path) {
        let mut left = vec![path];
        while let Some(path) = left.pop() {
            let place = path.strip_prefix(base).unwrap_or(&path).to_string_lossy().into_owned();
            if let Err(error) = self.entry(&path, &place, &mut left) {
                self.skip(&place, error);
            }
            if self.over(&place) {
                break;
            }
        }
    }

    /// Looks at a stream of bytes, which is called `place`.
    pub fn reader(&mut self, place: &str, reader: &mut dyn Read) {
        let mut reader = self.metered(reader);
        self.stream(place, &mut reader, 0);
    }

    /// Notes that a place can't be looked at.
    pub fn not_looked_at(&mut self, place: &str, reason: &str) {
        self.skip(place, reason);
    }

    /// Ends the audit.
    pub fn finish(mut self) -> AuditReport {
        for (kind, place, detail) in self.repositories.facts() {
            self.add(None, kind, place, 0, detail);
        }
        self.report.findings = self.findings.into_values().collect();
        self.report.findings.sort();
        self.report.not_looked_at = self.skipped.into_iter().collect();
        self.report
    }

    fn entry(&mut self, path: &Path, place: &str, left: &mut Vec<PathBuf>) -> std::io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        self.name(place);
        if metadata.is_dir() {
            let mut below = Vec::new();
            for entry in fs::read_dir(path)? {
                below.push(entry?.path());
                if below.len() as u64 + self.report.entries > self.limits.entries {
                    self.skip(place, "there are too many files");
                    break;
                }
            }
            below.sort();
            left.extend(below.into_iter().rev());
            return Ok(());
        }
        if metadata.is_symlink() {
            use std::os::unix::ffi::OsStrExt as _;
            let target = fs::read_link(path)?;
            self.report.entries += 1;
            self.content(place, target.as_os_str().as_bytes(), 0);
            return Ok(());
        }
        if !metadata.is_file() {
            self.skip(place, "it is a pipe, socket or device");
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            self.skip(place, "it changes while it is read");
            return Ok(());
        }
        let mut file = self.metered(std::fs::File::from(file));
        self.stream(place, &mut file, 0);
        Ok(())
    }

    fn metered<R: Read>(&self, inner: R) -> Metered<R> {
        Metered { inner, meter: Rc::clone(&self.meter) }
    }

    /// Tells whether a limit of the whole audit is reached.
    fn over(&mut self, place: &str) -> bool {
        if let Some(reason) = self.meter.exhausted() {
            self.skip(place, format!("{reason}, here and further on"));
            return true;
        }
        if self.report.entries >= self.limits.entries {
            self.skip(place, "there are too many files, here and further on");
            return true;
        }
        false
    }

    /// Looks at a stream: unpacks it if it is an archive, and else holds it in memory.
    fn stream(&mut self, place: &str, mut reader: &mut dyn Read, depth: usize) {
        if self.over(place) {
            return;
        }
        self.report.entries += 1;
        self.name(place);
        for hit in self.hunt.artifact(place) {
            if self.own.contains(&hit.task) {
                self.hit(hit, place);
            }
        }
        let mut head = Vec::new();
        if let Err(error) = (&mut reader).take(HEAD_BYTES as u64).read_to_end(&mut head) {
            self.skip(place, error);
            return;
        }
        let format = Format::of(&head);
        if format != Format::Plain && depth >= self.limits.depth {
            self.skip(place, "archives are nested too deep");
            return;
        }
        let mut whole = Cursor::new(head).chain(reader);
        match format {
            Format::Gzip => {
                let mut plain = self.metered(flate2::read::MultiGzDecoder::new(&mut whole));
                self.stream(&format!("{place}!gzip"), &mut plain, depth + 1);
            }
            Format::Xz => match Stream::new_stream_decoder(MOST_XZ_MEMORY, liblzma::stream::CONCATENATED) {
                Ok(stream) => {
                    let mut plain = self.metered(XzDecoder::new_stream(&mut whole, stream));
                    self.stream(&format!("{place}!xz"), &mut plain, depth + 1);
                }
                Err(error) => self.skip(place, error),
            },
            Format::Zstd => match zstd::stream::read::Decoder::new(&mut whole) {
                Ok(decoder) => {
                    let mut plain = self.metered(decoder);
                    self.stream(&format!("{place}!zstd"), &mut plain, depth + 1);
                }
                Err(error) => self.skip(place, error),
            },
            Format::Tar => self.tar(place, &mut whole, depth),
            Format::Ar => self.ar(place, &mut whole, depth),
            Format::Unknown(name) => self.skip(place, format!("it is {name}, which is not unpacked")),
            Format::Plain => {
                let mut content = Vec::new();
                let read = whole.take(self.limits.entry_bytes + 1).read_to_end(&mut content);
                if content.len() as u64 > self.limits.entry_bytes {
                    self.skip(place, format!("it has more than {} bytes", self.limits.entry_bytes));
                } else if let Err(error) = read {
                    self.skip(place, error);
                }
                // What was read before an error is looked at.
                self.content(place, &content, depth);
            }
        }
    }

    /// Looks for commit ids in a name. The finding's place ends with the name that has the id, so a directory is told once.
    fn name(&mut self, place: &str) {
        for hit in self.hunt.commits(place.as_bytes()) {
            let rest = hit.offset + hit.detail.len();
            let end = place[rest..].find(['/', '!']).map_or(place.len(), |length| rest + length);
            self.hit(Hit { offset: 0, ..hit }, &place[..end]);
        }
    }

    /// Looks at a content that is in memory.
    fn content(&mut self, place: &str, content: &[u8], depth: usize) {
        self.report.bytes += content.len() as u64;
        self.texts(place, content);
        if let Some((kind, place, detail)) = self.repositories.file(place, content) {
            self.add(None, kind, place, 0, detail);
        }
        if content.starts_with(&[0xca, 0xfe, 0xba, 0xbe])
            && let Ok(facts) = ClassFacts::read(content)
        {
            for hit in self.hunt.class(&facts.name) {
                self.hit(hit, place);
            }
        }
        let is_zip = content.starts_with(b"PK\x03\x04") || {
            let end = &content[content.len().saturating_sub(ZIP_END_BYTES)..];
            end.windows(4).any(|window| window == b"PK\x05\x06")
        };
        let pack = packs::pack_start(content);
        if depth >= self.limits.depth {
            if is_zip || pack.is_some() || packs::is_zlib(content) {
                self.skip(place, "archives are nested too deep");
            }
            return;
        }
        self.base64(place, content, depth);
        if let Some(plain) = base64::has_escaped_lines(content).then(|| unescaped(content)).flatten() {
            self.base64(&format!("{place}!unescaped"), &plain, depth);
        }
        if is_zip {
            self.zip(place, content, depth);
        }
        if let Some(start) = pack {
            self.pack(place, &content[start..], depth);
        }
        if packs::is_zlib(content) {
            self.zlib(place, content, depth);
        }
    }

    /// Looks at a content's text as it is, without escapes and entities, and at what patches in it lead to.
    fn texts(&mut self, place: &str, content: &[u8]) {
        let mut told: BTreeSet<(TaskId, Kind, String)> = BTreeSet::new();
        // A text is told once, where it stands as it is, and a changed part only where nothing else was found.
        let mut tell = |scanner: &mut Self, hits: Vec<Hit>, place: &str| {
            for hit in hits {
                let more = hit.kind == Kind::ChangedText && told.iter().any(|(task, ..)| *task == hit.task);
                if !more && told.insert((hit.task.clone(), hit.kind, hit.detail.clone())) {
                    scanner.hit(hit, place);
                }
            }
        };
        let mut look = |scanner: &mut Self, place: String, content: &[u8], raw| {
            tell(scanner, scanner.hunt.texts(content, raw), &place);
            for patched in patched(content) {
                tell(scanner, scanner.hunt.texts(&patched, false), &format!("{place}!patch"));
            }
        };
        look(self, place.to_owned(), content, true);
        resolved(content, &mut |name, plain| look(self, format!("{place}{name}"), plain, false));
    }

    /// Looks at base64 in a content, also in lines that a patch adds.
    fn base64(&mut self, place: &str, content: &[u8], depth: usize) {
        base64::decoded(content, &mut |offset, plain| {
            self.decoded(&format!("{place}!base64@{offset}"), plain, depth);
        });
        for side in added(content) {
            base64::decoded(&side, &mut |offset, plain| {
                self.decoded(&format!("{place}!patch!base64@{offset}"), plain, depth);
            });
        }
    }

    /// Looks at decoded bytes: at archives in them, and else for text and further base64 only, because most are not base64 at all.
    fn decoded(&mut self, place: &str, content: &[u8], depth: usize) {
        let format = Format::of(content);
        let is_archive = content.starts_with(b"PK\x03\x04")
            || content.starts_with(&[0xca, 0xfe, 0xba, 0xbe])
            || packs::pack_start(content).is_some()
            || packs::is_zlib(content)
            || (format != Format::Plain && format.is_certain());
        if is_archive {
            self.stream(place, &mut &content[..], depth + 1);
            return;
        }
        self.texts(place, content);
        if depth + 1 < self.limits.depth {
            self.base64(place, content, depth + 1);
        }
    }

    /// Looks at what a stream of zlib holds, which may be an object of git.
    fn zlib(&mut self, place: &str, content: &[u8], depth: usize) {
        let most = self.limits.entry_bytes;
        let (plain, failed) = packs::inflated(content, most);
        match failed {
            None => match Object::loose(plain) {
                Ok(object) => self.object(place, &object, depth),
                Err(plain) => {
                    let mut plain = self.metered(Cursor::new(&plain));
                    self.stream(&format!("{place}!zlib"), &mut plain, depth + 1);
                }
            },
            Some(reason) => {
                // Any text may begin with the two bytes of zlib, and then hardly anything inflates.
                if place.contains("/objects/") || plain.len() as u64 > most.min(LEAST_INFLATED_BYTES) {
                    self.skip(place, reason);
                }
                self.texts(&format!("{place}!zlib"), &plain);
            }
        }
    }

    fn zip(&mut self, place: &str, content: &[u8], depth: usize) {
        let mut archive = match zip::ZipArchive::new(Cursor::new(content)) {
            Ok(archive) => archive,
            Err(error) if content.starts_with(b"PK\x03\x04") => return self.skip(place, error),
            // The mark of a zip archive's end may stand in any content.
            Err(_) => return,
        };
        for index in 0..archive.len() {
            match archive.by_index(index) {
                Ok(entry) => {
                    let below = format!("{place}!{}", String::from_utf8_lossy(entry.name_raw()));
                    let mut entry = self.metered(entry);
                    self.stream(&below, &mut entry, depth + 1);
                    if self.over(&below) {
                        return;
                    }
                }
                Err(error) => self.skip(&format!("{place}!{index}"), error),
            }
        }
    }

    fn pack(&mut self, place: &str, pack: &[u8], depth: usize) {
        self.packs += 1;
        let directory = self.temporary.join(format!("audited-pack-{}", self.packs));
        let most = self.limits.entry_bytes;
        let read = packs::objects(pack, &directory, most, &mut |object| match object {
            Some(object) => {
                let place = format!("{place}!{}", object.id);
                if !self.over(&place) {
                    self.object(&place, &object, depth);
                }
            }
            None => self.skip(place, format!("an object has more than {most} bytes")),
        });
        if let Err(reason) = read {
            self.skip(place, reason);
        }
    }

    fn object(&mut self, place: &str, object: &Object, depth: usize) {
        self.report.entries += 1;
        if object.kind == git2::ObjectType::Commit {
            self.repositories.commit(place, object.id.clone(), object.parents().len());
        }
        // Ids of trees are binary, and hold no text.
        if object.kind != git2::ObjectType::Tree {
            let name = format!("{place}!{}", object.kind.str());
            let mut content = self.metered(Cursor::new(&object.content));
            self.stream(&name, &mut content, depth + 1);
        }
    }

    fn hit(&mut self, hit: Hit, place: &str) {
        self.add(Some(hit.task), hit.kind, place.to_owned(), hit.offset as u64, hit.detail);
    }

    fn add(&mut self, task_id: Option<TaskId>, kind: Kind, place: String, offset: u64, detail: String) {
        let cross_task = task_id.as_ref().is_some_and(|task| !self.own.contains(task));
        let key = (place.clone(), task_id.clone(), kind.name(), detail.clone());
        // Own findings are never pushed out by others'.
        let full = self.findings.len() >= self.limits.listed;
        if !full || (!cross_task && self.findings.len() < 2 * self.limits.listed) {
            self.findings.entry(key).or_insert(Finding { task_id, cross_task, kind, place, offset, detail });
        } else if !self.findings.contains_key(&key) {
            self.report.not_listed += 1;
        }
    }

    fn skip(&mut self, place: &str, reason: impl Display) {
        if self.skipped.len() < self.limits.listed {
            let reason = reason.to_string();
            self.skipped.insert(NotLookedAt { place: place.to_owned(), reason });
        } else {
            self.report.not_listed += 1;
        }
    }
}
