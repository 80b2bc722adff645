//! Names of the kernel's functions: it lies elsewhere after each boot, and which one it was the recording tells.

use std::fs;

use eprof_testbed::eprof;
use serde_json::Value;

use super::recording::{Recorded, RecordedKernel};
use super::{Folder, number};

const BUILD_ID: [u8; 20] = [0xab; 20];
/// The list of symbols of a kernel that was recorded, as it was at another boot.
const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000400 t do_work\n\
                        ffffffff81000800 t other_work\nffffffff81000c00 T _etext\n";
const TEXT: u64 = 0xffff_ffff_8100_0000;

#[test]
fn functions_of_the_kernel_keep_their_names_wherever_it_lay() {
    // In place, far away, and so near that addresses of one boot are those of other functions at another.
    for text in [TEXT, TEXT + 0x1900_0000, TEXT - 0x400, TEXT + 0x400] {
        let kernel = Some(RecordedKernel { build_id: &BUILD_ID, text, sampled: text + 0x410 });
        let folder = Folder::with(&Recorded { kernel, ..Recorded::default() });
        let cache = folder.path().join(".debug/.build-id/ab").join("ab".repeat(BUILD_ID.len() - 1));
        fs::create_dir_all(&cache).expect("a folder");
        fs::write(cache.join("kallsyms"), KALLSYMS).expect("written");
        let output = eprof()
            .args(["report", "--format", "json"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .output()
            .expect("eprof runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let of_kernel: Vec<(&str, f64)> = report["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .filter(|row| row["module"].as_str().is_some_and(|module| module.contains("kernel")))
            .map(|row| (row["name"].as_str().expect("a name"), number(&row["self_samples"])))
            .collect();
        assert_eq!(of_kernel, [("do_work", 100.0)], "the kernel lay at {text:x}");
    }
}
