//! The energy of instructions, known to a fake GPU, is found again.

#[path = "support/fake_gpu.rs"]
mod fake;

use std::time::Duration;

use eprof::gpu::instructions::catalogue::{INSTRUCTIONS, Instruction};
use eprof::gpu::instructions::energy::InstructionEnergy;
use eprof::record::gpu::{Cuda, MeasureOptions, Method, Occupancy, measure};
use fake::fake_gpu;

fn instruction(name: &str) -> &'static Instruction {
    INSTRUCTIONS.iter().find(|instruction| instruction.name == name).expect("in the list")
}

fn by(method: Method, all: &[(Method, InstructionEnergy)]) -> Option<InstructionEnergy> {
    all.iter().find(|(own, _)| *own == method).map(|(_, energy)| *energy)
}

const SETTINGS: &str = "idle 20\nrefresh_ms 5\nwindow_ms 3\nnanoseconds 20\nbase 1.5\n\
                        energy div.u32 2.25\nenergy fma.rn.f32 0.8\neliminated abs.s32\n";

#[test]
#[ignore = "polls in real time: on a busy machine the readings starve; run it alone, on a quiet one"]
fn known_energies_are_recovered() {
    let folder = tempfile::tempdir().expect("a folder");
    for (settings, name, truth, has_counter) in [
        (SETTINGS.to_owned(), "div.u32", 2.25, true),
        (SETTINGS.to_owned() + "fail energy 3\n", "fma.rn.f32", 0.8, false),
    ] {
        let library = fake_gpu(folder.path(), &settings, &[]);
        let own = folder.path().join(format!("lib-{name}.so"));
        std::fs::copy(&library, &own).expect("a copy");
        std::fs::write(folder.path().join(format!("lib-{name}.so.conf")), &settings).expect("its settings");
        let cuda = Cuda::open(Some(&own), 0).expect("a fake GPU");
        assert_eq!((cuda.capability, cuda.multiprocessors), (70, 80));
        let options = MeasureOptions {
            duration: Duration::from_millis(350),
            repeats: 1,
            level: 0,
            occupancy: Occupancy::OneThread,
            interval: Duration::from_millis(4),
            margin: Duration::from_millis(220),
            nvml_library: Some(own.clone()),
        };
        // On a machine that stops the monitor's thread for tens of milliseconds the readings around that
        // run are no good; the measurement is then repeated, as a user would.
        const ATTEMPTS: u32 = 6;
        let close = |all: &[(Method, InstructionEnergy)]| {
            all.iter().filter(|(method, _)| *method != Method::LastReading).all(|(method, found)| {
                println!(
                    "{name} {method:?}: {:.4} +- {:.4} of {truth} uJ",
                    found.microjoules, found.std_error
                );
                (found.microjoules / truth - 1.0).abs() < 0.03
            })
        };
        let measured = (0..ATTEMPTS)
            .map(|_| measure(&cuda, instruction(name), &options).expect("a measurement").by_method)
            .find(|all| close(all))
            .unwrap_or_else(|| panic!("{name}: not within 3 % in {ATTEMPTS} attempts"));
        assert_eq!(by(Method::Counter, &measured).is_some(), has_counter);
        let counted = by(Method::Counter, &measured).or(by(Method::Area, &measured)).expect("a method");
        assert!((counted.cycles - 20.0).abs() < 0.5 && !counted.eliminated, "{counted:?}");
        // A single reading times the duration charges idling too, and hangs on that one reading.
        let best = by(Method::Counter, &measured).or(by(Method::Area, &measured)).expect("a method");
        if let Some(last) = by(Method::LastReading, &measured) {
            assert!((last.microjoules - truth).abs() > (best.microjoules - truth).abs(), "{last:?}");
        }
    }
}

#[test]
fn an_eliminated_chain_is_found_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = fake_gpu(folder.path(), &(SETTINGS.to_owned() + "energy abs.s32 1\n"), &[]);
    let cuda = Cuda::open(Some(&library), 0).expect("a fake GPU");
    let options = MeasureOptions {
        duration: Duration::from_millis(60),
        repeats: 1,
        level: 4,
        occupancy: Occupancy::OneThread,
        interval: Duration::from_millis(4),
        margin: Duration::from_millis(80),
        nvml_library: Some(library.clone()),
    };
    let measured = measure(&cuda, instruction("abs.s32"), &options).expect("a measurement").by_method;
    assert!(measured.iter().all(|(_, energy)| energy.eliminated), "{measured:?}");
}

#[test]
fn a_machine_without_cuda_is_told_so() {
    let error =
        Cuda::open(Some(std::path::Path::new("/nonexistent/libcuda.so.1")), 0).err().expect("no driver");
    assert!(error.to_string().contains("driver"), "{error}");
}
