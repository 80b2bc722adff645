//! A table of texts, as formats of protocol buffers have it.

use rustc_hash::FxHashMap;

/// Texts by their place in a table. The first text is the empty one.
pub(super) struct Texts {
    places: FxHashMap<String, u64>,
    table: Vec<String>,
}

impl Texts {
    pub fn new() -> Self {
        Self { places: FxHashMap::from_iter([(String::new(), 0)]), table: vec![String::new()] }
    }

    /// The place of a text.
    pub fn place(&mut self, text: &str) -> u64 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.table.len() as u64;
        self.table.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    /// The table.
    pub fn all(&self) -> &[String] {
        &self.table
    }
}
