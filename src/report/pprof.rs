//! A profile in pprof's format (<https://github.com/google/pprof/blob/main/proto/profile.proto>), which is compressed
//! by gzip where it is exported. The first mapping is the program's own file, which pprof takes for the profile's name.
//!
//! Nothing is summed up: each stack of each thread is a sample with its addresses, its inlined functions and
//! lines. The values of a sample are its joules, summed over the domains that no other contains and of each
//! domain alone, its CPU time and its number of kernel samples.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::error::ReportError;
use super::exporter::{Exported, Exporter};
use super::folded::WholeNumbers;
use super::frames::module_label;
use super::protobuf::Message;
use super::select::{Selected, Selection};
use super::stack_filter::StackFilter;
use super::texts::Texts;
use crate::label::Label;
use crate::profile::{AddressId, Module, ModuleKind, Profile, ProfileMethod, ProfileParts};
use crate::symbolize::Symbols;

/// Units per joule of the values: microjoules.
const MICROJOULES: f64 = 1e6;
/// Bytes of samples that are gathered before they are written.
const WRITTEN_AT_ONCE: usize = 1 << 16;

/// Field numbers of the format's messages.
mod field {
    pub mod profile {
        pub const SAMPLE_TYPE: u64 = 1;
        pub const SAMPLE: u64 = 2;
        pub const MAPPING: u64 = 3;
        pub const LOCATION: u64 = 4;
        pub const FUNCTION: u64 = 5;
        pub const STRING_TABLE: u64 = 6;
        pub const DURATION_NANOS: u64 = 10;
        pub const COMMENT: u64 = 13;
        pub const DEFAULT_SAMPLE_TYPE: u64 = 14;
    }
    pub mod value_type {
        pub const TYPE: u64 = 1;
        pub const UNIT: u64 = 2;
    }
    pub mod sample {
        pub const LOCATION_ID: u64 = 1;
        pub const VALUE: u64 = 2;
        pub const LABEL: u64 = 3;
    }
    pub mod label {
        pub const KEY: u64 = 1;
        pub const STR: u64 = 2;
        pub const NUM: u64 = 3;
    }
    pub mod mapping {
        pub const ID: u64 = 1;
        pub const FILENAME: u64 = 5;
        pub const BUILD_ID: u64 = 6;
        pub const HAS_FUNCTIONS: u64 = 7;
        pub const HAS_FILENAMES: u64 = 8;
        pub const HAS_LINE_NUMBERS: u64 = 9;
        pub const HAS_INLINE_FRAMES: u64 = 10;
    }
    pub mod location {
        pub const ID: u64 = 1;
        pub const MAPPING_ID: u64 = 2;
        pub const ADDRESS: u64 = 3;
        pub const LINE: u64 = 4;
    }
    pub mod line {
        pub const FUNCTION_ID: u64 = 1;
        pub const LINE: u64 = 2;
    }
    pub mod function {
        pub const ID: u64 = 1;
        pub const NAME: u64 = 2;
        pub const SYSTEM_NAME: u64 = 3;
        pub const FILENAME: u64 = 4;
    }
}

/// pprof's format, as an export.
pub struct Pprof;

impl Exporter for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn about(&self) -> &'static str {
        "Protocol buffer for pprof"
    }

    fn needs_lines(&self) -> bool {
        true
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        exported.check_something()?;
        // A compressor that is handed a word at a time clears its buffer for each.
        let mut out = BufWriter::with_capacity(1 << 16, GzEncoder::new(out, Compression::default()));
        write(exported.profile, exported.symbols, &exported.options.selection, &mut out)?;
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
        Ok(())
    }
}

/// Writes a profile for pprof, not compressed: pprof reads that as well.
///
/// # Errors
/// If the selection names something that the profile does not have, or writing fails.
pub fn write(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    selection: &Selection,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let profile = parts.profile();
    let selected = Selected::resolve(selection, profile)?;
    let mut texts = Texts::new();
    let mut message = Message::default();
    let mut values = Values::new(profile, &selected);
    for (kind, unit) in &values.types {
        let mut value_type = Message::default();
        value_type.number(field::value_type::TYPE, texts.place(kind));
        value_type.number(field::value_type::UNIT, texts.place(unit));
        message.message(field::profile::SAMPLE_TYPE, &value_type);
    }
    let default = texts.place(&values.types[0].0);
    out.write_all(message.as_bytes())?;
    let filter = StackFilter::new(profile, symbols, selection);
    let mut written = Ok(());
    parts.for_each_part(&mut |part| {
        if written.is_ok() {
            written = write_samples(part, &selected, &filter, &mut values, &mut texts, &mut out);
        }
    });
    written?;
    let mut message = Message::default();
    write_code(profile, symbols, &mut texts, &mut message);
    message.number(field::profile::DURATION_NANOS, profile.duration.as_nanos());
    let how = comment_on_method(ProfileMethod::of(
        selected.domains.iter().map(|&domain| profile.domains[domain].info.method),
    ));
    let comments = how.into_iter().chain(profile.warnings.iter().map(String::as_str));
    let comments: Vec<u64> = comments.map(|text| texts.place(Label::new(text).as_str())).collect();
    message.numbers(field::profile::COMMENT, comments);
    message.number(field::profile::DEFAULT_SAMPLE_TYPE, default);
    for text in texts.all() {
        message.text(field::profile::STRING_TABLE, text);
    }
    out.write_all(message.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// What the reader must know of joules that no meter counted.
fn comment_on_method(method: ProfileMethod) -> Option<&'static str> {
    match method {
        ProfileMethod::Measured | ProfileMethod::None => None,
        ProfileMethod::Estimated => Some("energy is ESTIMATED from CPU time and assumed watts, not measured"),
        ProfileMethod::Mixed => Some("energy is partly measured, partly ESTIMATED"),
    }
}

/// What the values of samples are, and the rounding of each.
struct Values {
    types: Vec<(String, String)>,
    /// The profile's columns of joules that each value of energy sums.
    columns: Vec<Vec<usize>>,
    roundings: Vec<WholeNumbers>,
}

impl Values {
    fn new(profile: &Profile, selected: &Selected) -> Self {
        let mut types = Vec::new();
        let mut columns = Vec::new();
        if !profile.domains.is_empty() {
            types.push(("energy".to_owned(), "microjoules".to_owned()));
            columns.push(selected.domains.clone());
            for (index, domain) in profile.domains.iter().enumerate() {
                types
                    .push((format!("energy of {}", Label::new(&domain.info.name)), "microjoules".to_owned()));
                columns.push(vec![index]);
            }
        }
        types.push(("cpu".to_owned(), "nanoseconds".to_owned()));
        types.push(("samples".to_owned(), "count".to_owned()));
        let roundings = columns.iter().map(|_| WholeNumbers::new(MICROJOULES)).collect();
        Self { types, columns, roundings }
    }
}

/// Writes the samples of a part of the profile: all of them together may be more than there is memory for.
fn write_samples(
    profile: &Profile,
    selected: &Selected,
    filter: &StackFilter,
    values: &mut Values,
    texts: &mut Texts,
    out: &mut impl Write,
) -> io::Result<()> {
    let taken = filter.taken(profile, selected);
    let mut message = Message::default();
    let keys = ["thread", "tid", "process", "pid"].map(|key| texts.place(key));
    for (index, cell, totals) in selected.cells(profile) {
        if !taken[cell.stack.0 as usize] {
            continue;
        }
        let joules = profile.joules(index);
        let mut numbers: Vec<u64> = Vec::with_capacity(values.types.len());
        for (columns, rounding) in values.columns.iter().zip(&mut values.roundings) {
            numbers.push(rounding.next(columns.iter().map(|&column| joules[column].as_joules()).sum()));
        }
        numbers.extend([totals.time.as_nanos(), totals.samples]);

        let mut sample = Message::default();
        // Innermost first; ids count from 1.
        let frames = profile.stacks.frames(cell.stack);
        sample.numbers(field::sample::LOCATION_ID, frames.map(|address| u64::from(address.0) + 1));
        sample.numbers(field::sample::VALUE, numbers);
        let thread = &profile.threads[cell.thread.0 as usize];
        let names = [&thread.name, &thread.process_name].map(|name| texts.place(Label::new(name).as_str()));
        let (pid, tid) = thread.ids().map(|(pid, tid)| (u64::from(pid), u64::from(tid))).unzip();
        for (key, kind, value) in [
            (keys[0], field::label::STR, Some(names[0])),
            (keys[1], field::label::NUM, tid),
            (keys[2], field::label::STR, Some(names[1])),
            (keys[3], field::label::NUM, pid),
        ] {
            let Some(value) = value else { continue };
            let mut label = Message::default();
            label.number(field::label::KEY, key).number(kind, value);
            sample.message(field::sample::LABEL, &label);
        }
        message.message(field::profile::SAMPLE, &sample);
        if message.as_bytes().len() >= WRITTEN_AT_ONCE {
            out.write_all(message.as_bytes())?;
            message = Message::default();
        }
    }
    out.write_all(message.as_bytes())
}

/// The module of the program itself: the file that a process has its name from, or else the first that is no library.
fn main_module(profile: &Profile) -> Option<usize> {
    let name = |module: &Module| module.path.rsplit('/').next().unwrap_or_default().to_owned();
    // The kernel keeps fifteen bytes of a process's name.
    let named = |module: &Module| {
        let name = name(module);
        !name.is_empty()
            && profile.threads.iter().any(|thread| {
                let of_process = &thread.process_name;
                *of_process == name || (of_process.len() == 15 && name.starts_with(of_process.as_str()))
            })
    };
    let is_file = |module: &Module| module.kind == ModuleKind::File;
    let is_program = |module: &Module| is_file(module) && !name(module).contains(".so");
    let position = |is: &dyn Fn(&Module) -> bool| profile.modules.iter().position(is);
    position(&|module| is_file(module) && named(module)).or_else(|| position(&is_program))
}

/// Modules, addresses and functions.
fn write_code(profile: &Profile, symbols: &Symbols, texts: &mut Texts, message: &mut Message) {
    let main = main_module(profile);
    let mut modules: Vec<(usize, &Module)> = profile.modules.iter().enumerate().collect();
    // The others keep their order.
    modules.sort_by_key(|(index, _)| Some(*index) != main);
    for (index, module) in modules {
        let id = index as u64 + 1;
        let hex = module.build_id.iter().flatten().map(|byte| format!("{byte:02x}")).collect::<String>();
        let is_file = module.kind == ModuleKind::File;
        let mut mapping = Message::default();
        mapping
            .number(field::mapping::ID, id)
            .number(field::mapping::FILENAME, texts.place(module_label(module).as_str()))
            .number(field::mapping::BUILD_ID, texts.place(&hex))
            // All is symbolized as far as it can be: pprof need not try.
            .flag(field::mapping::HAS_FUNCTIONS, true)
            .flag(field::mapping::HAS_FILENAMES, is_file)
            .flag(field::mapping::HAS_LINE_NUMBERS, is_file)
            .flag(field::mapping::HAS_INLINE_FRAMES, is_file);
        message.message(field::profile::MAPPING, &mapping);
    }
    let mut file_of_function = vec![0; symbols.functions().len()];
    for (index, address) in profile.addresses.iter().enumerate() {
        let mut location = Message::default();
        location
            .number(field::location::ID, index as u64 + 1)
            .number(field::location::MAPPING_ID, u64::from(address.module.0) + 1)
            .number(field::location::ADDRESS, address.address);
        // Innermost first.
        for frame in symbols.frames(AddressId(index as u32)).iter().rev() {
            if let Some(file) = frame.file {
                file_of_function[frame.function.0 as usize] =
                    texts.place(Label::new(symbols.file(file)).as_str());
            }
            let mut line = Message::default();
            line.number(field::line::FUNCTION_ID, u64::from(frame.function.0) + 1);
            line.number(field::line::LINE, frame.line.map_or(0, u64::from));
            location.message(field::location::LINE, &line);
        }
        message.message(field::profile::LOCATION, &location);
    }
    for ((function, file), id) in symbols.functions().iter().zip(file_of_function).zip(1..) {
        let mut described = Message::default();
        described
            .number(field::function::ID, id)
            .number(field::function::NAME, texts.place(Label::new(&function.name).as_str()))
            .number(field::function::SYSTEM_NAME, texts.place(Label::new(&function.raw_name).as_str()))
            .number(field::function::FILENAME, file);
        message.message(field::profile::FUNCTION, &described);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::report::fixture::{exported, sample_profile};
    use crate::report::protobuf::read::{Value, fields, messages, numbers};
    use crate::report::tree::TreeOptions;

    #[test]
    fn a_reader_of_the_format_finds_joules_names_and_lines() {
        let (profile, symbols) = sample_profile();
        let mut out = Vec::new();
        write(&profile, &symbols, &Selection::default(), &mut out).expect("a vector takes all");
        let profile_fields = fields(&out);
        let texts: Vec<String> = messages(&profile_fields, field::profile::STRING_TABLE)
            .into_iter()
            .map(|text| String::from_utf8(text.to_vec()).expect("UTF-8"))
            .collect();
        assert_eq!(texts[0], "");
        let number = |fields: &[(u64, Value<'_>)], wanted| {
            fields.iter().find_map(|(field, value)| match value {
                Value::Number(number) if *field == wanted => Some(*number as usize),
                _ => None,
            })
        };
        let types: Vec<&str> = messages(&profile_fields, field::profile::SAMPLE_TYPE)
            .into_iter()
            .map(|kind| texts[number(&fields(kind), field::value_type::TYPE).expect("a type")].as_str())
            .collect();
        assert_eq!(
            types,
            [
                "energy",
                "energy of package-0",
                "energy of package-0-cores",
                "energy of dram-0",
                "cpu",
                "samples"
            ]
        );

        let mut sums = vec![0; types.len()];
        let mut by_leaf: BTreeMap<String, u64> = BTreeMap::new();
        let name_of = |location: u64| {
            let all = messages(&profile_fields, field::profile::LOCATION);
            let lines = messages(&fields(all[location as usize - 1]), field::location::LINE)
                .into_iter()
                .map(fields)
                .collect::<Vec<_>>();
            let function = number(&lines[0], field::line::FUNCTION_ID).expect("a function");
            let functions = messages(&profile_fields, field::profile::FUNCTION);
            texts[number(&fields(functions[function - 1]), field::function::NAME).expect("a name")].clone()
        };
        for sample in messages(&profile_fields, field::profile::SAMPLE) {
            let sample = fields(sample);
            let values = numbers(messages(&sample, field::sample::VALUE)[0]);
            sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
            let locations = numbers(messages(&sample, field::sample::LOCATION_ID)[0]);
            *by_leaf.entry(name_of(locations[0])).or_default() += values[0];
        }
        // 18 J, 16 J, 11 J and 2 J; 1 s; 1,400 samples.
        assert_eq!(sums, [18_000_000, 16_000_000, 11_000_000, 2_000_000, 1_000_000_000, 1400]);
        assert_eq!(by_leaf["mix"], 13_500_000);
        assert_eq!(by_leaf["walk"], 2_750_000);
    }

    #[test]
    fn the_program_is_the_first_mapping_and_the_export_is_compressed() {
        let (mut profile, symbols) = sample_profile();
        let module = |path: &str| Module {
            kind: ModuleKind::File,
            path: path.to_owned(),
            build_id: None,
            inode: None,
            pid: None,
        };
        profile
            .modules
            .extend(["/lib/libother.so.1", "/bin/loader", "/opt/a-program-of-long-name"].map(module));
        let count = profile.modules.len();
        assert!(main_module(&profile).is_some_and(|index| index < count - 1), "a program, or no library");
        for thread in &mut profile.threads {
            thread.process_name = "a-program-of-lo".to_owned();
        }
        assert_eq!(main_module(&profile), Some(count - 1));

        let options = TreeOptions::default();
        let exported = exported(&profile, &symbols, &options);
        let mut compressed = Vec::new();
        Pprof.write(&exported, &mut compressed).expect("a vector takes all");
        let mut out = Vec::new();
        GzDecoder::new(&compressed[..]).read_to_end(&mut out).expect("gzip");
        let all = fields(&out);
        let first = fields(messages(&all, field::profile::MAPPING)[0]);
        let number = |wanted: u64| {
            first.iter().find_map(|(field, value)| match value {
                Value::Number(number) if *field == wanted => Some(*number as usize),
                _ => None,
            })
        };
        let text =
            messages(&all, field::profile::STRING_TABLE)[number(field::mapping::FILENAME).expect("a name")];
        assert!(text.ends_with(b"a-program-of-long-name"), "{}", String::from_utf8_lossy(text));
        assert_eq!(number(field::mapping::ID), Some(count), "locations still find it");
    }
}
