//! Enumerations whose values have names in files and options.

/// Defines such an enumeration: each value stands beside its name, so that neither the list of all values nor the
/// way back from a name can miss one.
macro_rules! named_values {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// All values, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The name in files and options.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            /// The value of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(super) use named_values;
