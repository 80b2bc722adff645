//! How joules were found, of rows that are added up.

/// What stands in the column `method` of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Methods {
    measured: bool,
    estimated: bool,
}

/// In SQL, of rows of `samples`: what [`Methods::of_flags`] takes.
pub const OF_SAMPLES: &str = "MAX(CASE WHEN method = 'estimated' THEN 1 ELSE 0 END) AS se, \
                              MAX(CASE WHEN method = 'estimated' THEN 0 ELSE 1 END) AS sm";

impl Methods {
    /// Of a value of the column.
    pub fn of(method: &str) -> Self {
        let estimated = method == "estimated";
        Self { measured: !estimated, estimated }
    }

    /// Of what the engine says: whether there are estimates, and whether there is what was measured.
    pub fn of_flags(estimated: i64, measured: i64) -> Self {
        Self { measured: measured != 0, estimated: estimated != 0 }
    }

    /// Of both together.
    pub fn and(self, other: Self) -> Self {
        Self { measured: self.measured || other.measured, estimated: self.estimated || other.estimated }
    }

    /// All joules are estimated.
    pub fn is_estimated(self) -> bool {
        self.estimated && !self.measured
    }

    /// In files, as `eprof report` has it.
    pub fn name(self) -> &'static str {
        match (self.measured, self.estimated) {
            (true, true) => "mixed",
            (false, true) => "estimated",
            (true, false) => "measured",
            (false, false) => "none",
        }
    }

    /// What joules that were found so are together: the whole that a balance is of.
    pub fn title(self) -> &'static str {
        match (self.measured, self.estimated) {
            (true, true) => "all",
            (false, true) => "estimated",
            (true, false) | (false, false) => "measured",
        }
    }

    /// For people.
    pub fn in_words(self) -> &'static str {
        match (self.measured, self.estimated) {
            (true, true) => "partly estimated",
            (false, true) => "estimated",
            (true, false) => "measured",
            (false, false) => "of nothing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_together_are_neither() {
        let (measured, estimated) = (Methods::of("measured"), Methods::of("estimated"));
        let both = measured.and(estimated);
        let said = |methods: Methods| [methods.name(), methods.title(), methods.in_words()];
        assert_eq!(said(measured.and(measured)), ["measured"; 3]);
        assert_eq!(said(estimated.and(Methods::default())), ["estimated"; 3]);
        assert_eq!(said(both), ["mixed", "all", "partly estimated"]);
        assert_eq!(said(Methods::default()), ["none", "measured", "of nothing"]);
        assert!(estimated.is_estimated() && !both.is_estimated() && !Methods::default().is_estimated());
        assert_eq!(
            [(1, 0), (0, 1), (1, 1)].map(|(e, m)| Methods::of_flags(e, m)),
            [estimated, measured, both]
        );
    }
}
