//! A small seeded generator and what it does to inputs.

/// Numbers that follow from a seed alone (xorshift64*).
#[derive(Debug, Clone)]
pub struct Generator {
    state: u64,
}

impl Generator {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // The algorithm never leaves zero.
        Self {
            state: if seed == 0 {
                0x9E37_79B9_7F4A_7C15
            } else {
                seed
            },
        }
    }

    pub fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, or zero.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from((self.number() >> 11) % limit).unwrap_or(0)
    }

    pub fn byte(&mut self) -> u8 {
        self.number().to_be_bytes()[0]
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Changes an input in one to eight ways.
    pub fn mutate(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        for _ in 0..=self.below(8) {
            self.mutate_once(input, corpus);
        }
    }

    fn mutate_once(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len());
        let length = self.below(input.len() - at.min(input.len()) + 1);
        match self.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (self.number() >> 61);
                }
            }
            1 => {
                let byte = self.byte();
                if let Some(slot) = input.get_mut(at) {
                    *slot = byte;
                }
            }
            2 => input.truncate(at),
            3 => drop(input.drain(at..at + length)),
            4 => {
                let copy = input[at..at + length].to_vec();
                input.splice(at..at, copy);
            }
            5 => {
                let noise: Vec<u8> = (0..self.below(200)).map(|_| self.byte()).collect();
                input.splice(at..at, noise);
            }
            6 => {
                // Lengths and offsets at their edges find more than random ones.
                let edge = *self.pick(&[0, 1, 0x7F, 0x80, 0xFE, 0xFF]).unwrap_or(&0);
                let end = (at + 4).min(input.len());
                input[at..end].fill(edge);
            }
            _ => {
                if let Some(other) = self.pick(corpus) {
                    let start = self.below(other.len());
                    input.splice(at..at, other[start..].iter().copied());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_same_inputs() {
        let corpus = vec![vec![1, 2, 3], vec![4; 100]];
        let run = || {
            let mut generator = Generator::new(42);
            let mut input = corpus[1].clone();
            generator.mutate(&mut input, &corpus);
            input
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn empty_input_can_be_mutated() {
        for seed in 0..500 {
            let mut input = Vec::new();
            Generator::new(seed).mutate(&mut input, &[]);
        }
    }
}
