//! libFuzzer's program: it gives its inputs to the target that the environment variable `TARGET` names.

#![no_main]

use std::sync::LazyLock;

use fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TARGET").expect("the environment variable TARGET names a target");
    Target::named(&name).expect("TARGET names none of the targets")
});

fuzz_target!(|input: &[u8]| TARGET.check(input));
