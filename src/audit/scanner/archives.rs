//! Archives in streams, member by member: tar and `ar`. Names and extensions are read within limits, and are looked at as well.

use std::io::{self, BufReader, Cursor, Read};

use tar::EntryType;

use super::super::unix_ar;
use super::Scanner;

/// The longest name and the largest extension of a tar archive's member that are read, in bytes.
const MOST_EXTENSION_BYTES: u64 = 1 << 20;

/// The longest name that is shown, in bytes.
const MOST_NAME_BYTES: usize = 4096;

/// What extensions say of the next member.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extensions {
    fn take(&mut self, kind: EntryType, content: &[u8]) {
        let name = || content.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        match kind {
            EntryType::GNULongName => self.path = Some(name()),
            EntryType::GNULongLink => self.target = Some(name()),
            _ => {
                for record in tar::PaxExtensions::new(content).filter_map(Result::ok) {
                    match record.key_bytes() {
                        b"path" => self.path = Some(record.value_bytes().to_vec()),
                        b"linkpath" => self.target = Some(record.value_bytes().to_vec()),
                        b"size" => self.size = record.value().ok().and_then(|digits| digits.parse().ok()),
                        _ => {}
                    }
                }
            }
        }
    }
}

impl Scanner<'_> {
    pub(super) fn tar(&mut self, place: &str, reader: &mut dyn Read, depth: usize) {
        let mut archive = tar::Archive::new(BufReader::new(reader));
        archive.set_ignore_zeros(true);
        // Raw, because the crate reads names and extensions whole.
        let entries = match archive.entries() {
            Ok(entries) => entries.raw(true),
            Err(error) => return self.skip(place, error),
        };
        let mut extensions = Extensions::default();
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.skip(place, error),
            };
            let kind = entry.header().entry_type();
            let is_extension = matches!(
                kind,
                EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader
            );
            if is_extension {
                let below = format!("{place}!extension");
                let mut content = Vec::new();
                let read = (&mut entry).take(MOST_EXTENSION_BYTES).read_to_end(&mut content);
                if let Err(error) = read {
                    return self.skip(place, error);
                }
                if entry.size() > MOST_EXTENSION_BYTES {
                    self.skip(&below, format!("a member's extension has more than {MOST_EXTENSION_BYTES} bytes"));
                }
                self.content(&below, &content, depth + 1);
                extensions.take(kind, &content);
                continue;
            }
            let Extensions { path, target, size } = std::mem::take(&mut extensions);
            let path = path.unwrap_or_else(|| entry.header().path_bytes().into_owned());
            let name = String::from_utf8_lossy(&path[..path.len().min(MOST_NAME_BYTES)]).into_owned();
            let below = format!("{place}!{}", name.trim_start_matches("./"));
            if size.is_some_and(|size| size != entry.size()) {
                return self.skip(&below, "an extension says another size, here and further on in the archive");
            }
            let is_sparse = entry.header().as_gnu().is_some_and(tar::GnuHeader::is_extended);
            if kind == EntryType::GNUSparse && is_sparse {
                return self.skip(&below, "it has many holes, here and further on in the archive");
            }
            let in_header = || entry.header().link_name_bytes().map(std::borrow::Cow::into_owned);
            if let Some(target) = target.or_else(in_header) {
                self.content(&below, &target, depth + 1);
            }
            self.stream(&below, &mut entry, depth + 1);
            if self.over(&below) {
                return;
            }
        }
    }

    pub(super) fn ar(&mut self, place: &str, mut reader: &mut dyn Read, depth: usize) {
        let mut magic = [0; unix_ar::MAGIC.len()];
        if let Err(error) = reader.read_exact(&mut magic) {
            return self.skip(place, error);
        }
        let mut names = Vec::new();
        loop {
            let member = match unix_ar::next(&mut reader, &names) {
                Ok(Some(member)) => member,
                Ok(None) => return,
                Err(error) => return self.skip(place, error),
            };
            let mut below = format!("{place}!{}", member.name);
            let mut content = (&mut reader).take(member.size);
            let mut read = Ok(0);
            // BSD's long names stand before the content.
            let length = member.name.strip_prefix("#1/").and_then(|length| length.parse::<u64>().ok());
            if let Some(length) = length.filter(|length| *length <= unix_ar::MOST_NAME_BYTES as u64) {
                let mut name = Vec::new();
                if let Err(error) = (&mut content).take(length).read_to_end(&mut name) {
                    return self.skip(&below, error);
                }
                below = format!("{place}!{}", String::from_utf8_lossy(&name).trim_end_matches('\0'));
            }
            if member.name == unix_ar::NAMES && names.is_empty() {
                read = (&mut content).take(unix_ar::MOST_NAMES_BYTES).read_to_end(&mut names);
                let mut whole = Cursor::new(&names).chain(&mut content);
                self.stream(&below, &mut whole, depth + 1);
            } else {
                self.stream(&below, &mut content, depth + 1);
            }
            // What was not looked at is passed over.
            let read = read.and_then(|_| io::copy(&mut content, &mut io::sink()));
            if content.limit() > 0 && read.is_ok() {
                return self.skip(&below, "the archive is truncated");
            }
            let filler = io::copy(&mut (&mut reader).take(member.size % 2), &mut io::sink());
            if let Err(error) = read.and(filler) {
                return self.skip(&below, error);
            }
            if self.over(&below) {
                return;
            }
        }
    }
}
