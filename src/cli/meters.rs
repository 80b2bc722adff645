//! The options that choose energy meters, the same for every verb that reads them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use eprof::meter::{AssumedWatts, MeterOptions, Source};

/// Which meters to read.
#[derive(Args)]
pub struct MeterArgs {
    /// Watts of the whole machine when idle and when busy, for an estimate where nothing is measured.
    #[arg(long, value_name = "IDLE:BUSY", value_parser = AssumedWatts::parse)]
    watts: Option<AssumedWatts>,

    /// NVIDIA's management library, if not the driver's own libnvidia-ml.so.1.
    #[arg(long, value_name = "FILE")]
    nvml_lib: Option<PathBuf>,

    #[arg(long, value_name = "METER", value_delimiter = ',', value_parser = source,
          help = format!("Read only this kind of meter: {}", source_names()))]
    meter: Vec<Source>,

    /// Milliseconds that a counter may rest before it is taken for none.
    #[arg(long, value_name = "MS", default_value_t = 25, hide = true)]
    meter_watch: u64,
}

impl MeterArgs {
    /// The same options as another eprof takes them.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        for source in &self.meter {
            arguments.extend(["--meter".into(), source.name().into()]);
        }
        if let Some(library) = &self.nvml_lib {
            arguments.extend(["--nvml-lib".into(), library.into()]);
        }
        if let Some(watts) = self.watts {
            let [idle, busy] = [watts.idle, watts.busy].map(|watts| watts.as_watts());
            arguments.extend(["--watts".into(), format!("{idle}:{busy}").into()]);
        }
        arguments.extend(["--meter-watch".into(), self.meter_watch.to_string().into()]);
        arguments
    }

    /// As the library takes them.
    pub fn options(self) -> MeterOptions {
        MeterOptions {
            watts: self.watts,
            only: (!self.meter.is_empty()).then_some(self.meter),
            nvml_library: self.nvml_lib,
            watch: Duration::from_millis(self.meter_watch),
        }
    }
}

fn source(text: &str) -> Result<Source, String> {
    Source::named(text).ok_or_else(|| format!("one of {}", source_names()))
}

/// `power, power-core, ... or estimate`
fn source_names() -> String {
    let [others @ .., last] = Source::ALL.map(Source::name);
    format!("{} or {last}", others.join(", "))
}
