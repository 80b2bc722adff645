//! The table against the collection of vendors' tables that it was made from.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

/// `(microarchitecture, event name)` to event, umask and cmask.
type VendorTable = BTreeMap<(String, String), (u16, Option<u8>, u8)>;

/// The collection lies beside the project, not in it.
fn vendor_table() -> Option<VendorTable> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/pmu-events.csv");
    let Ok(mut reader) = csv::Reader::from_path(&path) else {
        let required = std::env::var_os("EPROF_REQUIRE_LIVE").is_some_and(|value| value == "1");
        assert!(!required, "{} is required", path.display());
        eprintln!("skipped: {} is missing", path.display());
        return None;
    };
    let hex = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let rows = reader.records().map(|row| {
        let row = row.expect("a row");
        let umask = hex(&row[4]).map(|umask| umask as u8);
        let key = (row[0].to_owned(), row[2].to_owned());
        (key, (hex(&row[3]).expect("an event code"), umask, row[5].parse().unwrap_or(0)))
    });
    Some(rows.collect())
}

/// The names that the collection gives to microarchitectures.
fn rows_of(name: &str) -> Vec<(String, CoreKind)> {
    let large = |cores: &str| (format!("{name} cpu_core ({cores})"), CoreKind::Performance);
    let small = |cores: &str| (format!("{name} cpu_atom ({cores})"), CoreKind::Efficiency);
    match name {
        "alderlake" => vec![large("Golden Cove"), small("Gracemont")],
        "meteorlake" => vec![large("Redwood Cove"), small("Crestmont")],
        "arrowlake" | "lunarlake" => vec![large("Lion Cove"), small("Skymont")],
        _ => vec![(name.to_owned(), CoreKind::Performance)],
    }
}

#[test]
fn every_encoding_is_the_vendors() {
    let Some(vendors) = vendor_table() else { return };
    let names: Vec<String> = vendors
        .keys()
        .map(|(name, _)| name.split(' ').next().unwrap_or_default().to_owned())
        .filter(|name| name != "arm")
        .collect();
    let mut checked = 0;
    for name in names.iter().collect::<std::collections::BTreeSet<_>>() {
        for (row, kind) in rows_of(name) {
            let own_name = name.strip_prefix("amd").unwrap_or(name);
            let events =
                core_events(own_name, kind).unwrap_or_else(|| panic!("{own_name} is not in the table"));
            for encoding in [events.resource, events.l2] {
                check(&vendors, &row, encoding);
                checked += 1;
            }
        }
    }
    assert!(checked >= 2 * 28, "only {checked} encodings were checked");
}

/// One encoding against one row, or the union of the rows whose sum it is.
fn check(vendors: &VendorTable, row: &str, encoding: Encoding) {
    let found = |name: &str| vendors.get(&(row.to_owned(), name.to_owned())).copied();
    if let Some((event, umask, cmask)) = found(encoding.name) {
        assert_eq!(
            (encoding.event, encoding.umask, encoding.cmask),
            (event, umask.unwrap_or(0), cmask),
            "{row}"
        );
        return;
    }
    let parts: Vec<&str> = match encoding.name {
        "L2_RQSTS.DATA_RD+RFO+CODE_RD" => {
            vec!["L2_RQSTS.ALL_DEMAND_DATA_RD", "L2_RQSTS.ALL_RFO", "L2_RQSTS.ALL_CODE_RD"]
        }
        "L2_REQUEST.HIT+MISS" => vec!["L2_REQUEST.HIT", "L2_REQUEST.MISS"],
        "de_dis_dispatch_token_stalls1.any" => {
            let prefix = "de_dis_dispatch_token_stalls1.";
            vendors
                .keys()
                .filter(|(name, event)| name == row && event.starts_with(prefix))
                .map(|(_, e)| &**e)
                .collect()
        }
        other => panic!("{row} has no {other}"),
    };
    let union = parts.iter().map(|part| found(part).unwrap_or_else(|| panic!("{row} has no {part}")));
    let (event, umask) =
        union.fold((0, 0), |(_, mask), (event, umask, _)| (event, mask | umask.unwrap_or(0)));
    assert_eq!((encoding.event, encoding.umask), (event, umask), "{row} {}", encoding.name);
}

#[test]
fn arms_events_are_the_architectures() {
    let Some(vendors) = vendor_table() else { return };
    let rows = ["arm neoverse-n1", "arm neoverse-n2/v2", "arm neoverse-v1 / other ARMv8 PMUv3"];
    for row in rows {
        for name in [arm::RESOURCE[0], arm::RESOURCE[1], arm::L2[0], arm::L2[1]] {
            let name = name.to_ascii_uppercase();
            assert!(vendors.contains_key(&(row.to_owned(), name.clone())), "{row} has no {name}");
        }
    }
}
