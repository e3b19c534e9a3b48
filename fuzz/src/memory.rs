//! Counts the memory that a thread allocates, so that a target can be held to a limit.
//!
//! Rust's allocations of the running thread count. Those of C libraries (tree-sitter, zstd, liblzma) do not; the long run's
//! limit of the whole process covers them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, with an account for each thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: usize) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // A thread that ends has no account any more.
    let live = LIVE.try_with(|live| {
        live.set(live.get().saturating_add(bytes));
        live.get()
    });
    if let Ok(live) = live {
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live)));
    }
}

fn remove(bytes: usize) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: every method passes its arguments on to the system's allocator and returns what that returns.
#[expect(unsafe_code, reason = "an allocator can't be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While bytes are copied both places are taken.
        add(size);
        remove(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `work` and returns how many bytes this thread had at most beyond those it had before.
pub(crate) fn peak_of(work: impl FnOnce()) -> u64 {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    u64::try_from(PEAK.get().saturating_sub(before)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_and_not_the_end() {
        assert!(peak_of(|| ()) < 1000);
        let peak = peak_of(|| {
            drop(vec![1_u8; 5_000_000]);
            drop(vec![1_u8; 3_000_000]);
        });
        assert!((5_000_000..5_001_000).contains(&peak), "{peak}");
        let grown = peak_of(|| {
            let mut bytes = Vec::new();
            (0..1_000_000).for_each(|number: u32| bytes.push(number));
        });
        assert!(grown >= 4_000_000, "{grown}");
    }
}
