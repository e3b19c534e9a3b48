//! What a shortage of memory excuses.

use super::*;
use crate::engine::spec::LimitReached;

const LIMIT: u64 = 4 << 30;

fn end(signal: Option<i32>, memory_limit_kills: Option<u64>) -> CommandEnd {
    CommandEnd {
        exit_code: signal.is_none().then_some(1),
        signal,
        limit: None,
        cpu_ms: 0,
        peak_resident_bytes: 1 << 30,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: None,
        memory_limit_kills,
    }
}

fn is_excused(kill: MemoryKill, end: &CommandEnd) -> bool {
    was_short_of_memory(Some(kill), false, &[end], LIMIT)
}

#[test]
fn a_shortage_excuses_what_it_ended_and_nothing_else() {
    let killed = Some(libc::SIGKILL);
    // Its own group counts: a kill of whichever process, and no other failure.
    assert!(is_excused(MemoryKill::Shortage, &end(killed, Some(1))));
    assert!(is_excused(MemoryKill::Shortage, &CommandEnd { exit_code: Some(0), ..end(None, Some(1)) }), "a helper");
    assert!(!is_excused(MemoryKill::Shortage, &end(None, Some(0))), "nothing of its own was ended");
    assert!(!is_excused(MemoryKill::Limit, &end(killed, Some(1))));
    assert!(!was_short_of_memory(None, true, &[], LIMIT));

    // Without a group, only its own death by the kernel's signal is an excuse.
    assert!(is_excused(MemoryKill::ShortageNearby, &end(killed, Some(0))));
    assert!(
        is_excused(MemoryKill::ShortageNearby, &CommandEnd { exit_code: Some(137), ..end(None, None) }),
        "a shell's"
    );
    assert!(!is_excused(MemoryKill::ShortageNearby, &end(None, Some(0))), "a neighbour was ended");
    assert!(!is_excused(MemoryKill::ShortageNearby, &end(killed, Some(1))), "init ended it for its own limit");
    let spent = CommandEnd { limit: Some(LimitReached::Cpu), ..end(killed, Some(0)) };
    assert!(!is_excused(MemoryKill::ShortageNearby, &spent));

    // Who took what was allowed made the shortage.
    let greedy = CommandEnd { peak_resident_bytes: LIMIT / 8 * 7, ..end(killed, Some(1)) };
    assert!(!is_excused(MemoryKill::Shortage, &greedy));
    assert!(was_short_of_memory(Some(MemoryKill::Shortage), true, &[], LIMIT), "init itself");
}
