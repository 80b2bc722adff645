//! What a report by function says of a recording of the kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::VerifyError;
use super::kernels::Kernel;
use crate::analyze::{self, Analysis, Dimensions, MemoryLimit};
use crate::label::Label;
use crate::power_model::stored::StoredModel;
use crate::profile::{AddressId, CodeAddress, ModuleId, ModuleKind, ProfileParts};
use crate::recording::Recording;
use crate::report::{Options, Report};
use crate::symbolize::{SymbolizeOptions, Symbolizer};

/// What a report says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// Joules of the domains that it counts.
    pub measured: f64,
    /// Of these, what was given to other functions, to other processes and to eprof.
    pub of_others: f64,
    /// Joules of all functions.
    pub attributed: f64,
    /// How long was measured.
    pub seconds: f64,
    /// The kernels.
    pub kernels: Vec<ReportedKernel>,
    /// What the reader of the report is told of the recording.
    pub warnings: Vec<String>,
}

/// A kernel's row; zeros if it has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// Its own joules.
    pub joules: f64,
    /// Their standard error.
    pub std_error: f64,
    /// Its share of the time of all functions.
    pub time_share: f64,
}

/// Where a kernel's function lies in the file of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    path: String,
    offset: u64,
}

/// Reads a recording of this very program as `eprof report` does by default, and finds the rows of the kernels.
///
/// # Errors
/// If it cannot be read or has no joules.
pub fn read(
    recording: &Path,
    stored_model: Option<StoredModel>,
    kernels: &[Kernel],
) -> Result<Reported, VerifyError> {
    let recording = Arc::new(Recording::open(recording)?);
    let options = analyze::Options {
        dimensions: Dimensions { stacks: false, threads: false, cpus: false },
        stored_model,
        ..analyze::Options::default()
    };
    let mut analysis = Analysis::new(&recording, &options, MemoryLimit::NONE);
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let profile = analysis.profile_mut();
    let warnings = profile.warnings.clone();
    // The functions' own addresses get their names beside those of the samples.
    let places = kernels.iter().map(|kernel| {
        let place = place_of(&maps, kernel.address())?;
        let is_this =
            |module: &crate::profile::Module| module.kind == ModuleKind::File && module.path == place.path;
        let module = profile.modules.iter().position(is_this)?;
        profile.addresses.push(CodeAddress {
            module: ModuleId(module as u32),
            address: place.offset,
            kernel: false,
        });
        Some(AddressId(profile.addresses.len() as u32 - 1))
    });
    let places: Vec<Option<AddressId>> = places.collect();
    // The kernel's own functions keep no names: its list of symbols has a hundred thousand, and none is looked for.
    let options = SymbolizeOptions {
        inlines: false,
        lines: false,
        procfs: PathBuf::new(),
        sysfs: PathBuf::new(),
        ..SymbolizeOptions::default()
    };
    let symbols = Symbolizer::new(options).symbolize(&profile.modules, &profile.addresses);
    let report = Report::new(&analysis, &symbols, &Options { inline: false, ..Options::default() })?;
    let all_time: f64 = report.rows.iter().map(|row| row.own.time.as_secs_f64()).sum();
    let kernels = kernels.iter().zip(places).map(|(&kernel, address)| {
        let name = address.and_then(|address| {
            let function = symbols.function(symbols.frames(address).first()?.function);
            Some(Label::new(&function.name))
        });
        let rows = || report.rows.iter().filter(|row| Some(&row.name) == name.as_ref());
        let variance: f64 = rows().map(|row| row.own.variance).sum();
        let time: f64 = rows().map(|row| row.own.time.as_secs_f64()).sum();
        ReportedKernel {
            kernel,
            joules: rows().map(|row| row.own.joules.as_joules()).sum(),
            std_error: variance.max(0.0).sqrt(),
            time_share: if all_time > 0.0 { time / all_time } else { 0.0 },
        }
    });
    let kernels: Vec<ReportedKernel> = kernels.collect();
    let of_kernels: f64 = kernels.iter().map(|kernel| kernel.joules).sum();
    let balance = report.summary.balance;
    Ok(Reported {
        measured: balance.measured.as_joules(),
        of_others: balance.other_processes.as_joules()
            + balance.recorder.as_joules()
            + balance.attributed.as_joules()
            - of_kernels,
        attributed: balance.attributed.as_joules(),
        seconds: analysis.profile().duration.as_secs_f64(),
        kernels,
        warnings,
    })
}

/// The file that an address of this process is mapped from, and where in it: a line of `/proc/self/maps` is
/// `start-end permissions offset device inode path`.
fn place_of(maps: &str, address: u64) -> Option<Place> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let offset = hexadecimal(words.nth(1)?)?;
        let path = words.nth(2)?.trim_start();
        (start..end)
            .contains(&address)
            .then(|| Place { path: path.to_owned(), offset: address - start + offset })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_offset_in_its_file() {
        let maps = "55e0c0000000-55e0c0010000 r--p 00000000 fd:01 1234      /opt/my tools/eprof\n\
                    55e0c0010000-55e0c0090000 r-xp 00010000 fd:01 1234      /opt/my tools/eprof\n\
                    7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0         [stack]\n";
        let place = place_of(maps, 0x55e0_c001_0123).expect("mapped");
        assert_eq!(place, Place { path: "/opt/my tools/eprof".into(), offset: 0x10123 });
        assert_eq!(place_of(maps, 0x1000), None);
    }

    #[test]
    fn the_kernels_have_names_of_their_own() {
        let maps = fs::read_to_string("/proc/self/maps").expect("readable");
        let places = Kernel::ALL.map(|kernel| place_of(&maps, kernel.address()).expect("mapped"));
        let modules = [crate::profile::Module {
            kind: ModuleKind::File,
            path: places[0].path.clone(),
            build_id: None,
            inode: None,
            pid: None,
        }];
        let code = |place: &Place| CodeAddress { module: ModuleId(0), address: place.offset, kernel: false };
        let addresses = places.each_ref().map(code);
        let symbols = Symbolizer::new(SymbolizeOptions { inlines: false, ..SymbolizeOptions::default() })
            .symbolize(&modules, &addresses);
        for (at, kernel) in Kernel::ALL.into_iter().enumerate() {
            let frame = symbols.frames(AddressId(at as u32))[0];
            let name = &symbols.function(frame.function).name;
            assert!(name.contains(&format!("verify::kernels::loops::{kernel}")), "{name}");
        }
    }
}
