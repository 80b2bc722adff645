//! What stands between the cells of a table.

/// What stands between cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// A comma, a semicolon, a tab or a bar.
    Character(char),
    /// Blanks, but for those before a unit or a bracket and between a date and its clock.
    Blanks,
    /// Any blanks.
    Words,
    /// Two blanks or more, or a tab.
    Gaps,
}

impl Separator {
    /// All that are known; of two that fit alike the earlier is taken.
    pub(super) const ALL: [Self; 7] = [
        Self::Character('\t'),
        Self::Character(';'),
        Self::Character('|'),
        Self::Character(','),
        Self::Blanks,
        Self::Words,
        Self::Gaps,
    ];
}
