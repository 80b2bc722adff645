//! Profiles as OpenTelemetry has them, in the state of its protocol that it calls `v1development` (Alpha):
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/profiles/v1development/profiles.proto>.
//!
//! The file is one message `ProfilesData`, which is also what a collector's `/v1development/profiles` takes as the body of a
//! request. Each recording is a resource with a profile for each kind of value: nanojoules, summed over the domains that no
//! other contains and of each domain alone; CPU time; samples of the kernel.
//!
//! A message stands behind its length. So the profile is walked through once more than there are profiles: first to know how
//! long each of them is, then to write it. Nothing but tables of code is kept.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use self::attributes::resource;
use self::dictionary::Dictionary;
use super::error::ReportError;
use super::exporter::{Exported, Exporter};
use super::folded::WholeNumbers;
use super::protobuf::{Message, length_with_head};
use super::select::{Selected, Totals};
use super::stack_filter::StackFilter;
use super::store::recording_id;
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{Cell, DomainEnergy, Origin, Profile, ProfileMethod, ProfileParts, StackId};

mod attributes;
mod dictionary;
mod field;

/// Units per joule of the values: nanojoules.
const NANOJOULES: f64 = 1e9;
/// Bytes of a profile's id.
const PROFILE_ID_BYTES: usize = 16;
/// Bytes of samples that are gathered before they are written.
const WRITTEN_AT_ONCE: u64 = 1 << 16;

/// OpenTelemetry's profiles, as an export.
pub struct Otlp;

impl Exporter for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn about(&self) -> &'static str {
        "OpenTelemetry profiles (v1development) in nanojoules: what a collector's /v1development/profiles takes"
    }

    fn needs_lines(&self) -> bool {
        true
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        exported.check_something()?;
        let profile = exported.profile.profile();
        let selected = Selected::resolve(&exported.options.selection, profile)?;
        let filter = StackFilter::new(profile, exported.symbols, &exported.options.selection);
        let walk = Walk { parts: exported.profile, selected: &selected, filter: &filter };
        let mut dictionary = Dictionary::new(profile, exported.symbols);
        let kinds = Kind::all(profile, &selected);
        let nowhere = [Origin::default()];
        let origins = if profile.recordings.is_empty() { &nowhere[..] } else { &profile.recordings };

        // Several recordings have no one command.
        let subject = exported.options.subject.as_deref().filter(|_| origins.len() == 1);
        let lengths = walk.measure(&kinds, origins.len(), &dictionary);
        let whole = exported
            .started
            .and_then(|started| u64::try_from(started.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok());
        for (recording, (origin, lengths)) in origins.iter().zip(&lengths.profiles).enumerate() {
            // What is exported may be a window of a longer recording.
            let started = match origins.len() {
                1 => whole.or(origin.started_unix_ns),
                _ => origin.started_unix_ns.or(whole),
            };
            let head = |kind: &Kind| kind.head(profile, recording, started, &mut dictionary);
            let heads: Vec<Message> = kinds.iter().map(head).collect();
            let of_profiles: Vec<u64> =
                heads.iter().zip(lengths).map(|(head, samples)| head.len() + samples).collect();
            let scope = scope();
            let all: u64 = of_profiles
                .iter()
                .map(|length| length_with_head(field::scope_profiles::PROFILES, *length))
                .sum();
            let of_scope = scope.len() + all;
            let mut of_recording = Message::default();
            let attributes =
                resource(origin, &service(origin, subject, profile, recording), method(profile, &selected));
            of_recording.message(field::resource_profiles::RESOURCE, &attributes);
            let length =
                of_recording.len() + length_with_head(field::resource_profiles::SCOPE_PROFILES, of_scope);
            let mut written = Message::default();
            written.head(field::profiles_data::RESOURCE_PROFILES, length).append(&of_recording);
            written.head(field::resource_profiles::SCOPE_PROFILES, of_scope).append(&scope);
            out.write_all(written.as_bytes())?;
            for (kind, (head, length)) in kinds.iter().zip(heads.iter().zip(of_profiles)) {
                let mut written = Message::default();
                written.head(field::scope_profiles::PROFILES, length).append(head);
                out.write_all(written.as_bytes())?;
                walk.write_samples(kind, recording, &dictionary, out)?;
            }
        }
        let tables = dictionary.finish();
        let mut written = Message::default();
        written.head(field::profiles_data::DICTIONARY, tables.len() + lengths.stacks).append(&tables);
        out.write_all(written.as_bytes())?;
        walk.write_stacks(out)
    }
}

/// Who wrote it.
fn scope() -> Message {
    let mut scope = Message::default();
    scope
        .text(field::scope::NAME, env!("CARGO_PKG_NAME"))
        .text(field::scope::VERSION, env!("CARGO_PKG_VERSION"));
    let mut message = Message::default();
    message.message(field::scope_profiles::SCOPE, &scope);
    message
}

/// What receivers group profiles by: the program, or of a recording of everything the machine or control group whose it is.
fn service(origin: &Origin, subject: Option<&str>, profile: &Profile, recording: usize) -> String {
    let of_system = || origin.told(&Dimension::Cgroup).or_else(|| origin.told(&Dimension::Node));
    let whole = origin.is_of_system.then(of_system).flatten();
    whole.unwrap_or_else(|| program(subject, profile, recording).to_owned())
}

/// What was recorded: the command's name, or else that of the recording's process that was sampled most.
fn program<'a>(subject: Option<&'a str>, profile: &'a Profile, recording: usize) -> &'a str {
    let command = subject.and_then(|subject| subject.split_whitespace().next()?.rsplit('/').next());
    if let Some(name) = command.filter(|name| !name.is_empty()) {
        return name;
    }
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for cell in profile.cells.iter().filter(|cell| recording_of(profile, cell) == recording) {
        *by_name.entry(&profile.threads[cell.thread.0 as usize].process_name).or_default() += cell.samples;
    }
    let most = by_name.into_iter().max_by_key(|(_, samples)| *samples).map(|(name, _)| name);
    most.or_else(|| Some(profile.threads.first()?.process_name.as_str())).unwrap_or_default()
}

fn method(profile: &Profile, selected: &Selected) -> ProfileMethod {
    ProfileMethod::of(selected.domains.iter().map(|&domain| profile.domains[domain].info.method))
}

/// What the samples of a profile tell.
enum Kind {
    /// Nanojoules: a name, and the profile's columns of joules that are summed.
    Energy(String, Vec<usize>),
    /// Nanoseconds of CPUs.
    Cpu,
    /// Samples of the kernel.
    Samples,
}

impl Kind {
    fn all(profile: &Profile, selected: &Selected) -> Vec<Self> {
        let mut kinds = Vec::new();
        if !profile.domains.is_empty() {
            kinds.push(Self::Energy("energy".to_owned(), selected.domains.clone()));
        }
        if profile.domains.len() > 1 {
            let of_domain = |(index, domain): (usize, &DomainEnergy)| {
                Self::Energy(format!("energy of {}", Label::new(&domain.info.name)), vec![index])
            };
            kinds.extend(profile.domains.iter().enumerate().map(of_domain));
        }
        kinds.extend([Self::Cpu, Self::Samples]);
        kinds
    }

    /// A profile of this kind but for its samples.
    fn head(
        &self,
        profile: &Profile,
        recording: usize,
        started: Option<u64>,
        dictionary: &mut Dictionary,
    ) -> Message {
        let (name, unit) = match self {
            Self::Energy(name, _) => (name.as_str(), "nanojoules"),
            Self::Cpu => ("cpu", "nanoseconds"),
            Self::Samples => ("samples", "count"),
        };
        let mut value_type = Message::default();
        value_type.number(field::value_type::TYPE, dictionary.texts.place(name));
        value_type.number(field::value_type::UNIT, dictionary.texts.place(unit));
        let mut head = Message::default();
        head.message(field::profile::SAMPLE_TYPE, &value_type);
        head.fixed(field::profile::TIME_UNIX_NANO, started.unwrap_or(0));
        head.number(field::profile::DURATION_NANO, profile.duration.as_nanos());
        // The same whenever it is sent, so that a receiver can tell a profile that it has from another.
        let mut id = Sha256::new();
        id.update(recording_id(profile).to_le_bytes());
        id.update((recording as u64).to_le_bytes());
        id.update(name);
        head.bytes(field::profile::PROFILE_ID, &id.finalize()[..PROFILE_ID_BYTES]);
        head
    }

    fn value(&self, profile: &Profile, cell: usize, totals: &Totals, rounding: &mut WholeNumbers) -> u64 {
        match self {
            Self::Energy(_, columns) => {
                let joules = profile.joules(cell);
                rounding.next(columns.iter().map(|&column| joules[column].as_joules()).sum())
            }
            Self::Cpu => totals.time.as_nanos(),
            Self::Samples => totals.samples,
        }
    }
}

/// Bytes of the samples of each recording's profiles, by kind, and of all stacks.
struct Lengths {
    profiles: Vec<Vec<u64>>,
    stacks: u64,
}

/// A way through all samples, always in the same order.
struct Walk<'a> {
    parts: &'a dyn ProfileParts,
    selected: &'a Selected,
    filter: &'a StackFilter,
}

impl Walk<'_> {
    /// Calls `visit` with each part, what of its stacks is taken, and the place of its first stack in the table.
    fn for_each_part(&self, mut visit: impl FnMut(&Profile, &[bool], u64)) {
        // The first place stands for nothing.
        let mut first = 1;
        self.parts.for_each_part(&mut |part| {
            visit(part, &self.filter.taken(part, self.selected), first);
            first += part.stacks.len() as u64;
        });
    }

    /// Calls `visit` with the samples of a part.
    fn for_each_sample(&self, part: &Profile, taken: &[bool], mut visit: impl FnMut(usize, &Cell, &Totals)) {
        for (index, cell, totals) in self.selected.cells(part) {
            if taken[cell.stack.0 as usize] {
                visit(index, cell, &totals);
            }
        }
    }

    fn measure(&self, kinds: &[Kind], recordings: usize, dictionary: &Dictionary) -> Lengths {
        let mut profiles = vec![vec![0; kinds.len()]; recordings];
        let mut roundings: Vec<Vec<WholeNumbers>> =
            (0..recordings).map(|_| kinds.iter().map(|_| WholeNumbers::new(NANOJOULES)).collect()).collect();
        let mut stacks = 0;
        self.for_each_part(|part, taken, first| {
            stacks += stack_messages(part, taken, first).map(|message| message.len()).sum::<u64>();
            self.for_each_sample(part, taken, |index, cell, totals| {
                let recording = recording_of(part, cell);
                for (at, kind) in kinds.iter().enumerate() {
                    let value = kind.value(part, index, totals, &mut roundings[recording][at]);
                    profiles[recording][at] += sample(cell, value, first, dictionary).len();
                }
            });
        });
        Lengths { profiles, stacks }
    }

    fn write_samples(
        &self,
        kind: &Kind,
        recording: usize,
        dictionary: &Dictionary,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        let mut rounding = WholeNumbers::new(NANOJOULES);
        let (mut message, mut written) = (Message::default(), Ok(()));
        self.for_each_part(|part, taken, first| {
            self.for_each_sample(part, taken, |index, cell, totals| {
                if recording_of(part, cell) != recording || written.is_err() {
                    return;
                }
                let value = kind.value(part, index, totals, &mut rounding);
                message.append(&sample(cell, value, first, dictionary));
                if message.len() >= WRITTEN_AT_ONCE {
                    written = out.write_all(std::mem::take(&mut message).as_bytes());
                }
            });
        });
        written?;
        Ok(out.write_all(message.as_bytes())?)
    }

    fn write_stacks(&self, out: &mut dyn Write) -> Result<(), ReportError> {
        let mut written = Ok(());
        self.for_each_part(|part, taken, first| {
            for message in stack_messages(part, taken, first) {
                if written.is_ok() {
                    written = out.write_all(message.as_bytes());
                }
            }
        });
        written?;
        Ok(out.flush()?)
    }
}

fn recording_of(profile: &Profile, cell: &Cell) -> usize {
    profile.threads[cell.thread.0 as usize].recording.0 as usize
}

/// A sample as a profile has it; nothing where its value is 0.
fn sample(cell: &Cell, value: u64, first_stack: u64, dictionary: &Dictionary) -> Message {
    let mut field = Message::default();
    if value > 0 {
        let mut sample = Message::default();
        sample.number(field::sample::STACK, first_stack + u64::from(cell.stack.0));
        sample.numbers(field::sample::ATTRIBUTES, dictionary.of_thread(cell.thread.0));
        sample.numbers(field::sample::VALUES, [value]);
        field.message(field::profile::SAMPLES, &sample);
    }
    field
}

/// The stacks of a part, the innermost frame first; those that nothing is told of are empty. The first part's are preceded by
/// the one that stands for nothing.
fn stack_messages<'a>(
    part: &'a Profile,
    taken: &'a [bool],
    first: u64,
) -> impl Iterator<Item = Message> + use<'a> {
    let nothing = (first == 1).then(|| of_dictionary(&Message::default()));
    let stack = |(index, taken): (usize, &bool)| {
        let mut stack = Message::default();
        if *taken {
            let frames = part.stacks.frames(StackId(index as u32));
            stack.numbers(field::stack::LOCATIONS, frames.map(|address| u64::from(address.0) + 1));
        }
        of_dictionary(&stack)
    };
    nothing.into_iter().chain(taken.iter().enumerate().map(stack))
}

fn of_dictionary(stack: &Message) -> Message {
    let mut field = Message::default();
    field.message(field::dictionary::STACK_TABLE, stack);
    field
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::fixture::{Divided, exported, sample_profile};
    use crate::report::protobuf::read::{fields, messages, number, numbers};
    use crate::report::tree::TreeOptions;

    /// By name of a profile's values: unit, sum, and sums by the innermost function.
    type Read = BTreeMap<String, (String, u64, BTreeMap<String, u64>)>;

    fn read(bytes: &[u8]) -> Read {
        let all = fields(bytes);
        let dictionary = fields(messages(&all, field::profiles_data::DICTIONARY)[0]);
        let table = |field| -> Vec<&[u8]> { messages(&dictionary, field) };
        let texts: Vec<String> = table(field::dictionary::STRING_TABLE)
            .into_iter()
            .map(|text| String::from_utf8(text.to_vec()).expect("UTF-8"))
            .collect();
        for first in [
            field::dictionary::MAPPING_TABLE,
            field::dictionary::LOCATION_TABLE,
            field::dictionary::FUNCTION_TABLE,
            field::dictionary::LINK_TABLE,
            field::dictionary::STRING_TABLE,
            field::dictionary::ATTRIBUTE_TABLE,
            field::dictionary::STACK_TABLE,
        ] {
            assert!(table(first)[0].is_empty(), "the first entry of table {first} stands for nothing");
        }
        let function_of = |stack: u64| {
            let stack = fields(table(field::dictionary::STACK_TABLE)[stack as usize]);
            let innermost = numbers(messages(&stack, field::stack::LOCATIONS)[0])[0];
            let location = fields(table(field::dictionary::LOCATION_TABLE)[innermost as usize]);
            let line = fields(messages(&location, field::location::LINES)[0]);
            let function = number(&line, field::line::FUNCTION).expect("a function");
            let function = fields(table(field::dictionary::FUNCTION_TABLE)[function as usize]);
            texts[number(&function, field::function::NAME).expect("a name") as usize].clone()
        };
        let mut read = Read::new();
        for resource in messages(&all, field::profiles_data::RESOURCE_PROFILES) {
            let scopes = fields(resource);
            let scope = fields(messages(&scopes, field::resource_profiles::SCOPE_PROFILES)[0]);
            for profile in messages(&scope, field::scope_profiles::PROFILES) {
                let profile = fields(profile);
                let kind = fields(messages(&profile, field::profile::SAMPLE_TYPE)[0]);
                let text = |field| texts[number(&kind, field).expect("a text") as usize].clone();
                let kind = read.entry(text(field::value_type::TYPE)).or_default();
                kind.0 = text(field::value_type::UNIT);
                for sample in messages(&profile, field::profile::SAMPLES) {
                    let sample = fields(sample);
                    let value = numbers(messages(&sample, field::sample::VALUES)[0])[0];
                    kind.1 += value;
                    let stack = number(&sample, field::sample::STACK).expect("a stack");
                    *kind.2.entry(function_of(stack)).or_default() += value;
                }
            }
        }
        read
    }

    #[test]
    fn a_reader_of_the_format_finds_joules_by_function() {
        let (profile, symbols) = sample_profile();
        let options = TreeOptions::default();
        let mut bytes = Vec::new();
        Otlp.write(&exported(&profile, &symbols, &options), &mut bytes).expect("a vector takes all");
        let read = read(&bytes);
        let sums: Vec<(&str, &str, u64)> =
            read.iter().map(|(name, (unit, sum, _))| (name.as_str(), unit.as_str(), *sum)).collect();
        let expected = [
            ("cpu", "nanoseconds", 1_000_000_000),
            ("energy", "nanojoules", 18_000_000_000),
            ("energy of dram-0", "nanojoules", 2_000_000_000),
            ("energy of package-0", "nanojoules", 16_000_000_000),
            ("energy of package-0-cores", "nanojoules", 11_000_000_000),
            ("samples", "count", 1400),
        ];
        assert_eq!(sums, expected);
        assert_eq!(read["energy"].2["mix"], 13_500_000_000);
        assert_eq!(read["energy"].2["walk"], 2_750_000_000);
    }

    #[test]
    fn a_profile_in_parts_says_the_same() {
        let (profile, symbols) = sample_profile();
        let options = TreeOptions::default();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        Otlp.write(&exported(&profile, &symbols, &options), &mut whole).expect("a vector takes all");
        let divided = Divided::new(&profile, 3, |cell| cell % 3);
        let divided = Exported { profile: &divided, ..exported(&profile, &symbols, &options) };
        Otlp.write(&divided, &mut parts).expect("a vector takes all");
        let (whole, parts) = (read(&whole), read(&parts));
        for (name, (_, sum, by_function)) in &whole {
            assert_eq!(parts[name].1, *sum, "{name}");
            for (function, value) in by_function {
                assert!(parts[name].2[function].abs_diff(*value) <= 1, "{name} of {function}");
            }
        }
    }
}
