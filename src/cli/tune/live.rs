use super::Outcome;
use super::options::TuneArgs;
pub fn run(_args: &TuneArgs) -> Outcome {
    anyhow::bail!("not yet")
}
