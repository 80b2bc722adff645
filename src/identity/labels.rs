//! What the user calls a recording by: keys and values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Labels of a recording, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

/// Why a label cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// There is no equals sign.
    #[error("a label is KEY=VALUE, such as version=1.2")]
    NoValue,
    /// The key has other characters, or too many.
    #[error(
        "a label's key begins with a letter and has letters, digits and . _ - / after it, at most {} together",
        Labels::LONGEST_KEY
    )]
    Key,
    /// The value is too long, or does not fit into a line.
    #[error(
        "a label's value has at most {} bytes, and no control characters such as tabs and ends of lines",
        Labels::LONGEST_VALUE
    )]
    Value,
    /// A key was given twice.
    #[error("the label {0} was given more than once")]
    Repeated(String),
    /// There are too many.
    #[error("a recording has at most {} labels", Labels::MOST)]
    TooMany,
}

impl Labels {
    /// Most bytes of a key, as Kubernetes has them for names of labels.
    pub const LONGEST_KEY: usize = 63;
    /// Most bytes of a value.
    pub const LONGEST_VALUE: usize = 255;
    /// Most labels of a recording.
    pub const MOST: usize = 64;

    /// One label from `KEY=VALUE`. The value may be empty, and may have equals signs of its own.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<(String, String), LabelError> {
        let (key, value) = text.split_once('=').ok_or(LabelError::NoValue)?;
        let is_key = Self::is_key(key);
        let is_value = value.len() <= Self::LONGEST_VALUE && !value.chars().any(char::is_control);
        match (is_key, is_value) {
            (false, _) => Err(LabelError::Key),
            (_, false) => Err(LabelError::Value),
            _ => Ok((key.to_owned(), value.to_owned())),
        }
    }

    /// Whether a label can have this key.
    pub fn is_key(key: &str) -> bool {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        key.len() <= Self::LONGEST_KEY
            && key.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && key.bytes().all(is_inner)
    }

    /// Labels, none twice.
    ///
    /// # Errors
    /// If a key comes twice, or if there are too many.
    pub fn new(labels: impl IntoIterator<Item = (String, String)>) -> Result<Self, LabelError> {
        let mut all = BTreeMap::new();
        for (key, value) in labels {
            if all.contains_key(&key) {
                return Err(LabelError::Repeated(key));
            }
            all.insert(key, value);
        }
        if all.len() > Self::MOST { Err(LabelError::TooMany) } else { Ok(Self(all)) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_key_and_a_value() {
        let parsed = |text: &str| Labels::parse(text);
        assert_eq!(parsed("a.b/c=x=1"), Ok(("a.b/c".to_owned(), "x=1".to_owned())));
        assert_eq!(parsed("empty="), Ok(("empty".to_owned(), String::new())));
        assert_eq!(parsed("version"), Err(LabelError::NoValue));
        for wrong in ["=x", "1a=x", "a b=x", "ü=x", "a,b=x"] {
            assert_eq!(parsed(wrong), Err(LabelError::Key), "{wrong}");
        }
        assert_eq!(parsed(&format!("{}=x", "k".repeat(64))), Err(LabelError::Key));
        assert_eq!(parsed("a=two\nlines"), Err(LabelError::Value));
        assert_eq!(parsed("a=\u{1b}[31m"), Err(LabelError::Value));
        assert_eq!(parsed(&format!("a={}", "v".repeat(256))), Err(LabelError::Value));
    }

    #[test]
    fn none_comes_twice() {
        let pair = |key: &str| (key.to_owned(), "x".to_owned());
        assert_eq!(Labels::new([pair("a"), pair("a")]), Err(LabelError::Repeated("a".to_owned())));
        assert_eq!(Labels::new((0..65).map(|at| pair(&format!("k{at}")))), Err(LabelError::TooMany));
        let labels = Labels::new([pair("b"), pair("a")]).expect("two");
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "x"), ("b", "x")]);
    }
}
