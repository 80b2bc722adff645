//! Of which version tables are.

use anyhow::ensure;
use eprof::report::store::schema::VERSION;

/// That tables of another version are not asked.
pub fn check_version(found: &str, of: &str) -> anyhow::Result<()> {
    ensure!(
        found == VERSION,
        "{of} has tables of version {found}, and this eprof reads version {VERSION}: take the eprof that wrote them, or \
         write them anew by this one"
    );
    Ok(())
}
