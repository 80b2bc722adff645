//! Build-ids of modules, as a recording lists them.

use rustc_hash::FxHashMap;

use crate::profile::Module;
use crate::recording::Recording;

/// Adds to modules the build-ids that the recorder listed by path, where mappings did not name one themselves.
pub fn add_build_ids(modules: &mut [Module], recording: &Recording) {
    let listed: FxHashMap<&[u8], &[u8]> =
        recording.features().build_ids.iter().map(|listed| (&listed.path[..], &listed.id[..])).collect();
    for module in modules.iter_mut().filter(|module| module.build_id.is_none()) {
        module.build_id = listed.get(module.path.as_bytes()).map(|id| id.to_vec());
    }
}
