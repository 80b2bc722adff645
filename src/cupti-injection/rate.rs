//! How often a program launches, and whether that is too often to be watched.

const SECOND: u64 = 1_000_000_000;

/// Counts launches by seconds.
#[derive(Debug)]
pub struct LaunchRate {
    limit: u32,
    second: u64,
    count: u32,
}

impl LaunchRate {
    /// Which rate, in launches a second, is too much; 0 for none.
    pub fn new(limit: u32) -> Self {
        Self { limit, second: 0, count: 0 }
    }

    /// A launch at a time in nanoseconds; the rate, if it is one too many.
    pub fn launch(&mut self, time: u64) -> Option<u32> {
        let second = time / SECOND;
        if second != self.second {
            (self.second, self.count) = (second, 0);
        }
        self.count += 1;
        (self.limit > 0 && self.count > self.limit).then_some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_counts_anew() {
        let mut rate = LaunchRate::new(3);
        let at = |seconds: f64| (seconds * 1e9) as u64;
        let over: Vec<bool> =
            [0.1, 0.5, 0.9, 1.0, 1.1, 1.2, 1.3].map(|seconds| rate.launch(at(seconds)).is_some()).to_vec();
        assert_eq!(over, [false, false, false, false, false, false, true]);
        let mut never = LaunchRate::new(0);
        assert!((0..1000).all(|time| never.launch(time).is_none()));
    }
}
