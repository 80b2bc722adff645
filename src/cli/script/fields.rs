//! `-F`: which fields of a sample are printed, as perf script has them.

use std::str::FromStr;

/// A field of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Comm,
    Pid,
    Tid,
    Cpu,
    Time,
    Period,
    Event,
    Ip,
    Sym,
    SymOff,
    Dso,
}

impl Field {
    const ALL: [(&'static str, Self); 11] = [
        ("comm", Self::Comm),
        ("pid", Self::Pid),
        ("tid", Self::Tid),
        ("cpu", Self::Cpu),
        ("time", Self::Time),
        ("period", Self::Period),
        ("event", Self::Event),
        ("ip", Self::Ip),
        ("sym", Self::Sym),
        ("symoff", Self::SymOff),
        ("dso", Self::Dso),
    ];
}

/// The fields that are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    chosen: u16,
}

impl Default for Fields {
    /// perf's own: all but the process.
    fn default() -> Self {
        let all = Field::ALL.iter().filter(|(_, field)| *field != Field::Pid);
        Self { chosen: all.fold(0, |chosen, (_, field)| chosen | 1 << *field as u16) }
    }
}

impl Fields {
    fn has(self, field: Field) -> bool {
        self.chosen & 1 << field as u16 != 0
    }

    pub fn comm(self) -> bool {
        self.has(Field::Comm)
    }

    pub fn pid(self) -> bool {
        self.has(Field::Pid)
    }

    pub fn tid(self) -> bool {
        self.has(Field::Tid)
    }

    pub fn cpu(self) -> bool {
        self.has(Field::Cpu)
    }

    pub fn time(self) -> bool {
        self.has(Field::Time)
    }

    pub fn period(self) -> bool {
        self.has(Field::Period)
    }

    pub fn event(self) -> bool {
        self.has(Field::Event)
    }

    /// Addresses, and with them call stacks.
    pub fn ip(self) -> bool {
        self.has(Field::Ip)
    }

    pub fn sym(self) -> bool {
        self.has(Field::Sym)
    }

    /// The offset behind a symbol's start.
    pub fn symoff(self) -> bool {
        self.has(Field::SymOff)
    }

    pub fn dso(self) -> bool {
        self.has(Field::Dso)
    }
}

impl FromStr for Fields {
    type Err = String;

    /// `comm,tid,ip`, or the default with changes: `+pid,-period`.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let is_change = |word: &&str| word.starts_with(['+', '-']);
        let changes = words.iter().any(&is_change);
        if changes && !words.iter().all(is_change) {
            return Err(
                "either name the fields, or change the default ones with + and - before each".to_owned()
            );
        }
        let mut fields = if changes { Self::default() } else { Self { chosen: 0 } };
        for word in words {
            let name = word.trim_start_matches(['+', '-']);
            let known = Field::ALL.iter().find(|(known, _)| *known == name);
            let (_, field) = known.ok_or_else(|| {
                let names: Vec<&str> = Field::ALL.iter().map(|(name, _)| *name).collect();
                format!("no field {name:?}; there are: {}", names.join(", "))
            })?;
            let bit = 1 << *field as u16;
            fields.chosen = if word.starts_with('-') { fields.chosen & !bit } else { fields.chosen | bit };
        }
        if !fields.ip() && !changes && (fields.sym() || fields.symoff() || fields.dso()) {
            return Err("sym, symoff and dso say where an address lies: add ip".to_owned());
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_or_changed() {
        let fields: Fields = "comm,tid,ip,sym".parse().expect("fields");
        assert!(fields.comm() && fields.tid() && fields.sym() && !fields.pid() && !fields.time());
        let fields: Fields = "+pid,-period".parse().expect("changes");
        assert!(fields.pid() && fields.comm() && fields.symoff() && !fields.period());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| text.parse::<Fields>().expect_err(text);
        assert!(error("comm,moon").contains("no field \"moon\""));
        assert!(error("comm,+pid").contains("either"));
        assert!(error("comm,sym").contains("add ip"));
    }
}
