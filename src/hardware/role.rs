//! What an event stands for in a power model.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// The part that an event plays in a power model, whatever a CPU calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Unhalted cycles.
    Clk,
    /// Instructions retired.
    Inst,
    /// Stalls for want of resources.
    Resource,
    /// Requests to the second-level cache.
    L2,
    /// Misses of the last cache: traffic with memory.
    LlcMiss,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Clk, Self::Inst, Self::Resource, Self::L2, Self::LlcMiss];

    /// The name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clk => "clk",
            Self::Inst => "inst",
            Self::Resource => "resource",
            Self::L2 => "l2",
            Self::LlcMiss => "llc-miss",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// For `deserialize_with`: a role that this version does not know is none.
    ///
    /// # Errors
    /// If there is something else than a text or nothing.
    pub fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        Ok(name.as_deref().and_then(Self::named))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_options_call_roles_the_same() {
        for role in Role::ALL {
            assert_eq!(serde_json::to_string(&role).expect("text"), format!("\"{role}\""));
            assert_eq!(Role::named(role.name()), Some(role));
        }
        assert_eq!(Role::named("uops"), None);
    }
}
