//! What an event stands for in a power model.
//!
//! # A new role
//!
//! 1. Here: the value with its name, at the place that its importance gives it (where counters are scarce, later roles
//!    are left out), and the words in events' names that suggest it.
//! 2. `machine/model_events.rs`: by which event a machine counts it, and whether that takes a fixed counter. Where
//!    vendors' encodings are needed they are a new field of `CoreEvents` in `machine/model_table.rs`.
//! 3. `record/periods.rs`: how often it happens on a busy core.
//! 4. `power_model/presets.rs`: what it costs in proportion to the others.
//!
//! The compiler asks for each of these. Everything else (files, options, calibration, reports) takes roles as they come.

use serde::{Deserialize, Deserializer};

use super::named_values::named_values;

named_values! {
    /// The part that an event plays in a power model, whatever a CPU calls it: the most important first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Role {
        /// Unhalted cycles.
        Clk = "clk",
        /// Instructions retired.
        Inst = "inst",
        /// Stalls for want of resources.
        Resource = "resource",
        /// Requests to the second-level cache.
        L2 = "l2",
        /// Misses of the last cache: traffic with memory.
        LlcMiss = "llc-miss",
    }
}

impl Role {
    /// The role that an event's name suggests. A stall is one, whatever it waits for.
    pub fn suggested_by(event: &str) -> Option<Self> {
        let event = event.to_ascii_lowercase();
        let most_special_first = [Self::Resource].into_iter().chain(Self::ALL.into_iter().rev());
        most_special_first.into_iter().find(|role| role.is_suggested_by(&event))
    }

    fn is_suggested_by(self, event: &str) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| event.contains(word));
        match self {
            Self::Clk => has(&["cycle", "clk_unhalted"]) && !has(&["ref"]),
            Self::Inst => has(&["instructions", "inst_retired"]),
            Self::Resource => has(&["stall", "resource"]),
            Self::L2 => has(&["l2"]),
            Self::LlcMiss => has(&[
                "llc-load-misses",
                "llc_misses",
                "cache-misses",
                "cache_miss",
                "longest_lat_cache.miss",
            ]),
        }
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

    #[test]
    fn names_of_events_suggest_roles() {
        let suggested = |event| Role::suggested_by(event);
        assert_eq!(suggested("CYCLE_ACTIVITY.STALLS_L2_MISS"), Some(Role::Resource));
        assert_eq!(suggested("cpu/l2_rqsts.references/"), Some(Role::L2));
        assert_eq!(suggested("LONGEST_LAT_CACHE.MISS"), Some(Role::LlcMiss));
        assert_eq!((suggested("cycles:u"), suggested("ref-cycles")), (Some(Role::Clk), None));
        assert_eq!((suggested("INST_RETIRED.ANY"), suggested("joules")), (Some(Role::Inst), None));
    }
}
