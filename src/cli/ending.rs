//! The ending of an output's name tells its format; what would then lie about its content is refused.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;

/// A format that a verb writes.
pub trait Named: ValueEnum + Copy + PartialEq {
    /// Endings of names that mean it, without the point.
    fn endings(self) -> &'static [&'static str];

    /// Its word for `--format`.
    fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Endings, and what writes such files.
const WRITTEN_BY: [(&str, &str); 20] = [
    ("svg", "eprof flamegraph"),
    ("png", "eprof flamegraph"),
    ("html", "eprof view"),
    ("htm", "eprof view"),
    ("json", "eprof report --format json"),
    ("csv", "eprof report --format csv"),
    ("folded", "eprof export --format collapsed"),
    ("collapsed", "eprof export --format collapsed"),
    ("pprof", "eprof export --format pprof"),
    ("parquet", "eprof export --format parquet"),
    ("pdf", ""),
    ("jpg", ""),
    ("jpeg", ""),
    ("gif", ""),
    ("bmp", ""),
    ("webp", ""),
    ("tif", ""),
    ("tiff", ""),
    ("eps", ""),
    ("ps", ""),
];

/// The format that is asked for, or that the output's name tells; `None` if neither does.
///
/// # Errors
/// If the two disagree, or the name is that of a format that the verb does not write.
pub fn format<F: Named>(asked: Option<F>, output: Option<&Path>) -> anyhow::Result<Option<F>> {
    let Some(path) = output else { return Ok(asked) };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let of_name = F::value_variants().iter().copied().find(|format| format.endings().contains(&&*ending));
    let name = path.display();
    match (asked, of_name) {
        (Some(asked), Some(of_name)) if asked != of_name => bail!(
            "{name} is {} by its name, and --format {} is asked for: leave out --format, or give another name",
            of_name.word(),
            asked.word()
        ),
        (_, Some(of_name)) => Ok(Some(of_name)),
        (asked, None) => match WRITTEN_BY.iter().find(|(written, _)| *written == ending) {
            None => Ok(asked),
            Some((_, "")) => bail!(
                "{name}: no verb writes .{ending}: a picture for a browser ends in .svg, one of pixels in .png"
            ),
            Some((_, verb)) => bail!("{name}: .{ending} is written by `{verb} -o {name}`"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
    enum Picture {
        Svg,
        Text,
    }

    impl Named for Picture {
        fn endings(self) -> &'static [&'static str] {
            match self {
                Self::Svg => &["svg"],
                Self::Text => &["txt"],
            }
        }
    }

    #[test]
    fn the_ending_decides_and_no_name_lies() {
        let told =
            |asked, name: &str| format::<Picture>(asked, Some(Path::new(name))).map_err(|it| it.to_string());
        assert_eq!(told(None, "x.SVG"), Ok(Some(Picture::Svg)));
        assert_eq!(told(None, "x.txt"), Ok(Some(Picture::Text)));
        assert_eq!(told(Some(Picture::Svg), "x.svg"), Ok(Some(Picture::Svg)));
        for open in ["x", "-", "/dev/stdout", "run.1", "energy.2026-11-24"] {
            assert_eq!(told(None, open), Ok(None));
            assert_eq!(told(Some(Picture::Text), open), Ok(Some(Picture::Text)));
        }
        assert_eq!(format::<Picture>(None, None).ok(), Some(None));
        let error = told(Some(Picture::Text), "x.svg").expect_err("they disagree");
        assert!(error.contains("x.svg is svg by its name") && error.contains("--format text"), "{error}");
        for asked in [None, Some(Picture::Svg)] {
            let error = told(asked, "x.html").expect_err("another verb's");
            assert!(error.contains("`eprof view -o x.html`"), "{error}");
        }
        assert!(told(None, "x.pdf").expect_err("nobody's").contains(".png"));
    }
}
