//! Names of the members of an untrusted tar archive.
//!
//! The tar library reads a name of any length into memory. So readers take an archive's members raw, and a member that only
//! describes the next one is read here, within a bound.

use std::io::{self, Read};

use tar::EntryType;

/// The largest member that only describes the next one, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// What earlier members said of the next one.
#[derive(Debug, Default)]
pub(crate) struct Described {
    /// Its path, without the header's bounds.
    pub(crate) path: Option<Vec<u8>>,
    /// What it links to.
    pub(crate) link: Option<Vec<u8>>,
}

impl Described {
    /// Reads a member that describes the next one. Returns `false` for other members, which are not read.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::InvalidData`] for a description that is too long, or that gives the next member another size.
    pub(crate) fn take_from<R: Read>(&mut self, member: &mut tar::Entry<'_, R>) -> io::Result<bool> {
        match member.header().entry_type() {
            EntryType::GNULongName => self.path = Some(without_nul(read(member)?)),
            EntryType::GNULongLink => self.link = Some(without_nul(read(member)?)),
            EntryType::XGlobalHeader => drop(read(member)?),
            EntryType::XHeader => {
                for record in tar::PaxExtensions::new(&read(member)?) {
                    let record = record?;
                    match record.key_bytes() {
                        b"path" => self.path = Some(record.value_bytes().to_vec()),
                        b"linkpath" => self.link = Some(record.value_bytes().to_vec()),
                        key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                            return Err(invalid("it holds a sparse or oversized file"));
                        }
                        _ => {}
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read(member: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    member.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(invalid("a name in it is too long"));
    }
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(kind: EntryType, description: &[u8]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (kind, path, content) in [(kind, "description", description), (EntryType::Regular, "next", b"")] {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(kind);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, path, content).unwrap();
        }
        archive.into_inner().unwrap()
    }

    /// Returns the path and the link of the member after a description.
    fn described(kind: EntryType, description: &[u8]) -> io::Result<[Option<String>; 2]> {
        let bytes = archive(kind, description);
        let mut described = Described::default();
        for member in tar::Archive::new(&*bytes).entries()?.raw(true) {
            if !described.take_from(&mut member?)? {
                let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
                return Ok([text(described.path), text(described.link)]);
            }
        }
        panic!("the member after the description is gone");
    }

    #[test]
    fn names_of_every_kind_are_read_up_to_a_bound() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(described(EntryType::GNULongName, b"a/b\0").unwrap(), [some("a/b"), None]);
        assert_eq!(described(EntryType::GNULongLink, b"c\0").unwrap(), [None, some("c")]);
        let records = b"12 path=a/b\n14 linkpath=c\n11 mtime=1\n";
        assert_eq!(described(EntryType::XHeader, records).unwrap(), [some("a/b"), some("c")]);
        assert_eq!(described(EntryType::XGlobalHeader, records).unwrap(), [None, None]);
        assert_eq!(described(EntryType::Regular, b"content").unwrap(), [None, None]);
        let longest = vec![b'a'; 64 << 10];
        assert_eq!(described(EntryType::GNULongName, &longest).unwrap()[0].as_ref().unwrap().len(), 64 << 10);

        let refused = |kind, description: &[u8]| described(kind, description).unwrap_err().to_string();
        let longer = vec![b'a'; (64 << 10) + 1];
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader, EntryType::XGlobalHeader] {
            assert_eq!(refused(kind, &longer), "a name in it is too long");
        }
        for record in [&b"13 size=1000\n"[..], b"22 GNU.sparse.major=1\n"] {
            assert_eq!(refused(EntryType::XHeader, record), "it holds a sparse or oversized file");
        }
    }
}
