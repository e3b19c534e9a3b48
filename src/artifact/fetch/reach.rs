//! Remembers which origins do not answer, so that a command asks each of them once and not again for every file.
//!
//! Only silence counts: no connection, no address for the host's name, or no answer within the time limit. A status,
//! such as 404, is an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Client, FetchError, Wanted};
use crate::artifact::origin::OriginName;

/// Files in a row that an origin which answered before may leave without an answer.
const PATIENCE: u32 = 3;

/// The origins that one client has asked. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Reach(Arc<Mutex<BTreeMap<OriginName, Known>>>);

#[derive(Clone, Default)]
struct Known {
    /// Admits one request at a time until the first answer.
    first: Arc<tokio::sync::Mutex<()>>,
    answered: bool,
    /// Files in a row without an answer.
    unanswered: u32,
    /// The cause, once the origin is not asked any more.
    silent: Option<String>,
}

impl Reach {
    fn known(&self) -> MutexGuard<'_, BTreeMap<OriginName, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while another request is the first one of an origin. The caller holds the result during its own request.
    async fn turn(&self, origin: &OriginName) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let known = self.known().entry(origin.clone()).or_default().clone();
        if known.answered || known.silent.is_some() {
            return None;
        }
        let turn = known.first.lock_owned().await;
        // The first request may have been answered meanwhile.
        let waits = self.known().get(origin).is_some_and(|known| !known.answered);
        waits.then_some(turn)
    }

    /// Returns the reason for asking the origin no more; `None` if it is still asked.
    fn silence(&self, origin: &OriginName) -> Option<String> {
        self.known().get(origin)?.silent.clone()
    }

    /// Records the result of a request.
    fn note<T>(&self, origin: &OriginName, result: &Result<T, FetchError>) {
        let mut all = self.known();
        let known = all.entry(origin.clone()).or_default();
        match result {
            Err(FetchError::OriginUnreachable { silent: true, cause, .. }) => {
                known.unanswered += 1;
                if !known.answered || known.unanswered >= PATIENCE {
                    known.silent = Some(cause.clone());
                }
            }
            Ok(_)
            | Err(
                FetchError::OriginUnreachable { .. }
                | FetchError::Gone { .. }
                | FetchError::Refused { .. }
                | FetchError::Garbage { .. }
                | FetchError::TooLarge { .. },
            ) => {
                known.answered = true;
                known.unanswered = 0;
            }
            // These are about this machine, not about the origin.
            Err(
                FetchError::Origin(_)
                | FetchError::InvalidPath { .. }
                | FetchError::Offline { .. }
                | FetchError::Store(_)
                | FetchError::Setup(_),
            ) => {}
        }
    }
}

impl Client {
    /// Sends a request, unless the origin did not answer an earlier one of this client.
    pub(super) async fn ask<T>(
        &self,
        wanted: &Wanted<'_>,
        request: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let _turn = self.reach.turn(wanted.origin).await;
        if let Some(cause) = self.reach.silence(wanted.origin) {
            return Err(wanted.silent(cause));
        }
        let result = request.await;
        self.reach.note(wanted.origin, &result);
        result
    }
}
