//! The PTX programs assemble, by NVIDIA's own assembler where it is installed: `ptxas` in the path or
//! named by EPROF_PTXAS. It comes with the CUDA toolkit and in PyPI's `nvidia-cuda-nvcc-cu12`.

use std::path::Path;
use std::process::Command;

use eprof::gpu::instructions::catalogue::INSTRUCTIONS;
use eprof::gpu::instructions::ptx::program;

fn assemble(ptxas: &str, folder: &Path, name: &str, text: &str, target: &str, level: &str) {
    let source = folder.join(format!("{name}.ptx"));
    std::fs::write(&source, text).expect("a file");
    let output = Command::new(ptxas)
        .args(["-arch", target, level, "-o", "/dev/null"])
        .arg(&source)
        .output()
        .expect("ptxas was found");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} for {target} at {level}: {said}\n{text}");
}

#[test]
fn all_programs_assemble() {
    let ptxas = std::env::var("EPROF_PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    if Command::new(&ptxas).arg("--version").output().is_err() {
        eprof_testbed::skip_quietly("no `ptxas` in the path and none named by EPROF_PTXAS");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Without optimisation and with, each for devices of its own kind.
    for (capability, level) in [
        (52, "-O3"),
        (61, "-O3"),
        (70, "-O0"),
        (70, "-O3"),
        (75, "-O3"),
        (80, "-O3"),
        (86, "-O3"),
        (90, "-O3"),
    ] {
        for instruction in INSTRUCTIONS.iter().filter(|instruction| instruction.runs_on(capability)) {
            for with in [true, false] {
                let name = format!("{}-{with}", instruction.name);
                let text = program(instruction, with, capability);
                assemble(&ptxas, folder.path(), &name, &text, &format!("sm_{capability}"), level);
            }
        }
    }
}
