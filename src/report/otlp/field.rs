//! Field numbers of the format's messages: `opentelemetry/proto/profiles/v1development/profiles.proto`, and of what it uses
//! of `common/v1` and `resource/v1`.

pub mod profiles_data {
    pub const RESOURCE_PROFILES: u64 = 1;
    pub const DICTIONARY: u64 = 2;
}
pub mod dictionary {
    pub const MAPPING_TABLE: u64 = 1;
    pub const LOCATION_TABLE: u64 = 2;
    pub const FUNCTION_TABLE: u64 = 3;
    pub const LINK_TABLE: u64 = 4;
    pub const STRING_TABLE: u64 = 5;
    pub const ATTRIBUTE_TABLE: u64 = 6;
    pub const STACK_TABLE: u64 = 7;
}
pub mod resource_profiles {
    pub const RESOURCE: u64 = 1;
    pub const SCOPE_PROFILES: u64 = 2;
}
pub mod resource {
    pub const ATTRIBUTES: u64 = 1;
}
pub mod scope_profiles {
    pub const SCOPE: u64 = 1;
    pub const PROFILES: u64 = 2;
}
pub mod scope {
    pub const NAME: u64 = 1;
    pub const VERSION: u64 = 2;
}
pub mod profile {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLES: u64 = 2;
    pub const TIME_UNIX_NANO: u64 = 3;
    pub const DURATION_NANO: u64 = 4;
    pub const PROFILE_ID: u64 = 7;
}
pub mod value_type {
    pub const TYPE: u64 = 1;
    pub const UNIT: u64 = 2;
}
pub mod sample {
    pub const STACK: u64 = 1;
    pub const ATTRIBUTES: u64 = 2;
    pub const VALUES: u64 = 4;
}
pub mod mapping {
    pub const FILENAME: u64 = 4;
    pub const ATTRIBUTES: u64 = 5;
}
pub mod stack {
    pub const LOCATIONS: u64 = 1;
}
pub mod location {
    pub const MAPPING: u64 = 1;
    pub const ADDRESS: u64 = 2;
    pub const LINES: u64 = 3;
}
pub mod line {
    pub const FUNCTION: u64 = 1;
    pub const LINE: u64 = 2;
}
pub mod function {
    pub const NAME: u64 = 1;
    pub const SYSTEM_NAME: u64 = 2;
    pub const FILENAME: u64 = 3;
}
pub mod attribute {
    pub const KEY: u64 = 1;
    pub const VALUE: u64 = 2;
}
pub mod key_value {
    pub const KEY: u64 = 1;
    pub const VALUE: u64 = 2;
}
pub mod any_value {
    pub const STRING: u64 = 1;
    pub const INT: u64 = 3;
}
