//! `origins.toml`: recorded addresses by name. The file never leaves this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{OriginAddress, OriginError, OriginName};
use crate::data_dir::{write_atomically, write_privately};
use crate::digest::Digest;

/// How many digits of an address' digest a name may contain. The smallest sufficient number is used.
const DIGITS: [usize; 4] = [8, 16, 32, 64];

/// Longest name of an origin.
const MOST_BYTES: usize = 100;

/// The file with the addresses.
#[derive(Clone, Debug)]
pub struct RecordedOrigins {
    path: PathBuf,
    held: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedFile {
    schema: u32,
    #[serde(default)]
    origins: BTreeMap<OriginName, String>,
}

impl RecordedOrigins {
    /// Returns the file in the data directory, which need not exist.
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join("origins.toml"), held: data_dir.join("locks/.held") }
    }

    /// Returns the address with this name. A name with a part of an address' digest may come from a lock of another
    /// machine, where that address was not the first of its id. It stands for the same address here.
    ///
    /// # Errors
    /// [`OriginError::Malformed`], [`OriginError::Io`].
    pub fn find(&self, name: &OriginName) -> Result<Option<OriginAddress>, OriginError> {
        let origins = self.read_file()?.origins;
        let address = |text: &String| text.parse().map_err(|_| self.malformed("an address is wrong"));
        if let Some(text) = origins.get(name) {
            return address(text).map(Some);
        }
        let Some((id, digits)) = name.as_str().rsplit_once('-') else { return Ok(None) };
        let Some(text) = id.parse().ok().and_then(|id: OriginName| origins.get(&id)) else { return Ok(None) };
        let address = address(text)?;
        let same = DIGITS.contains(&digits.len()) && fingerprint(&address).starts_with(digits);
        Ok(same.then_some(address))
    }

    /// Records an address by this name, unless the name has one. Tells whether the address was added.
    ///
    /// # Errors
    /// [`OriginError`].
    pub(crate) fn add(&self, name: &OriginName, address: &OriginAddress) -> Result<bool, OriginError> {
        self.change(|file| {
            let vacant = !file.origins.contains_key(name);
            if vacant {
                file.origins.insert(name.clone(), address.url().to_string());
            }
            vacant
        })
    }

    /// Records an address and returns its name: its id, or the id and a part of the address' digest if the id is
    /// reserved or taken. A recorded address keeps its name. Addresses from the user are not checked for this.
    ///
    /// # Errors
    /// [`OriginError`].
    pub(super) fn name(
        &self,
        id: &OriginName,
        address: &OriginAddress,
        is_given: &dyn Fn(&OriginName) -> bool,
    ) -> Result<OriginName, OriginError> {
        let text = address.url().to_string();
        let digest = fingerprint(address);
        self.change(|file| {
            let longer = DIGITS.map(|digits| {
                let id: String = id.as_str().chars().take(MOST_BYTES - 1 - digits).collect();
                OriginName(format!("{id}-{}", &digest[..digits]))
            });
            let mut last = id.clone();
            for name in [id.clone()].into_iter().chain(longer) {
                last = name;
                if last.is_reserved() {
                    continue;
                }
                if is_given(&last) {
                    break;
                }
                match file.origins.get(&last) {
                    Some(known) if *known == text => break,
                    Some(_) => {}
                    None => {
                        file.origins.insert(last.clone(), text.clone());
                        break;
                    }
                }
            }
            last
        })
    }

    /// Changes the file under a lock.
    fn change<T>(&self, change: impl FnOnce(&mut RecordedFile) -> T) -> Result<T, OriginError> {
        fs::create_dir_all(&self.held)?;
        let path = self.held.join("origins.flock");
        let lock = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(std::io::Error::from)?;
        let mut file = self.read_file()?;
        let before = file.origins.len();
        let result = change(&mut file);
        if file.origins.len() != before {
            file.schema = 1;
            let text = toml::to_string(&file).map_err(|_| self.malformed("it can't be written as TOML"))?;
            // Other users may share the data directory, but must not read credentials.
            let secret = file.origins.values().any(|address| address.contains('@'));
            let write = if secret { write_privately } else { write_atomically };
            write(&self.path, text.as_bytes())?;
        }
        Ok(result)
    }

    fn malformed(&self, reason: &str) -> OriginError {
        OriginError::Malformed { path: self.path.clone(), reason: reason.to_owned() }
    }

    fn read_file(&self) -> Result<RecordedFile, OriginError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(RecordedFile::default()),
            Err(error) => return Err(error.into()),
        };
        let file: RecordedFile = toml::from_str(&text).map_err(|error| self.malformed(error.message()))?;
        if file.schema > 1 { Err(self.malformed("a newer program wrote it")) } else { Ok(file) }
    }
}

fn fingerprint(address: &OriginAddress) -> String {
    Digest::of(address.url().as_str().as_bytes()).hex()
}
