//! What the processor of this host can do, as one word.
//!
//! A guest that sees the host's own processor remembers in its memory what it found there, so what
//! was saved on one processor can only go on where all of it is the same. Names do not tell: two
//! hosts of one name may differ in firmware, in microcode, or in what a hypervisor lets through.

use std::arch::x86_64::{__cpuid_count, __get_cpuid_max};

/// A leaf of the processor's tables, and which of its four registers say what it can do. The others
/// hold numbers of the core that is asked, or what is switched on just now.
struct Leaf {
    leaf: u32,
    part: u32,
    registers: [bool; 4],
}

const fn leaf(leaf: u32, part: u32, registers: [bool; 4]) -> Leaf {
    Leaf {
        leaf,
        part,
        registers,
    }
}

/// Whether the system has switched extended states on, and keys of protection: not a matter of the
/// processor. Both in the third register.
const STATES_SWITCHED_ON: u32 = 1 << 27;
const KEYS_SWITCHED_ON: u32 = 1 << 4;
const FEATURES: u32 = 1;
const MORE_FEATURES: u32 = 7;
const EXTENDED: u32 = 0x8000_0000;

const LEAVES: [Leaf; 11] = [
    // Who made it.
    leaf(0, 0, [false, true, true, true]),
    // Family, model and stepping; features.
    leaf(FEATURES, 0, [true, false, true, true]),
    // Features.
    leaf(MORE_FEATURES, 0, [false, true, true, true]),
    leaf(MORE_FEATURES, 1, [true, true, true, true]),
    leaf(MORE_FEATURES, 2, [false, false, false, true]),
    // Which extended states there are, and how large all of them are.
    leaf(0xd, 0, [true, false, true, true]),
    leaf(0xd, 1, [true, false, true, true]),
    // Features.
    leaf(EXTENDED + 1, 0, [false, false, true, true]),
    leaf(EXTENDED + 7, 0, [false, false, false, true]),
    // Sizes of addresses; features.
    leaf(EXTENDED + 8, 0, [true, true, false, false]),
    leaf(EXTENDED + 0x21, 0, [true, false, false, false]),
];

/// A digest over what the processor says of itself. The same on every core and after every boot of
/// one host, for as long as neither its firmware nor its microcode changes.
#[must_use]
pub fn processor_digest() -> String {
    let mut hasher = blake3::Hasher::new();
    for Leaf {
        leaf,
        part,
        registers,
    } in LEAVES
    {
        let (most, _) = __get_cpuid_max(leaf & EXTENDED);
        if leaf > most {
            continue;
        }
        let found = __cpuid_count(leaf, part);
        let mut values = [found.eax, found.ebx, found.ecx, found.edx];
        match (leaf, part) {
            (FEATURES, 0) => values[2] &= !STATES_SWITCHED_ON,
            (MORE_FEATURES, 0) => values[2] &= !KEYS_SWITCHED_ON,
            _ => {}
        }
        for (value, is_told) in values.into_iter().zip(registers) {
            if is_told {
                hasher.update(&value.to_le_bytes());
            }
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_hears_the_same() {
        let first = processor_digest();
        let ask = || std::thread::spawn(processor_digest).join().unwrap();
        let answers: Vec<String> = (0..64).map(|_| ask()).collect();
        assert!(answers.iter().all(|answer| *answer == first));
        assert_eq!(first.len(), 16);
    }
}
