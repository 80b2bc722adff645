//! The heading of gpmTOOL's files, which has four lines.

/// Number of clock domains, their defaults, components per domain, component names.
pub(super) struct GpmHeading<'a> {
    domains: usize,
    components: Vec<&'a str>,
    /// The text below it.
    pub(super) body: &'a str,
}

impl GpmHeading<'_> {
    /// Names of the columns of rows with so many cells.
    pub(super) fn names(&self, cells: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if cells == self.domains + self.components.len() + 2 {
            names.push("name".to_owned());
        }
        names.push("power".to_owned());
        names.extend(
            ["core clock", "memory clock", "third clock"].iter().take(self.domains).map(|n| (*n).to_owned()),
        );
        names.extend(self.components.iter().map(|name| (*name).to_owned()));
        names
    }
}

pub(super) fn heading(text: &str) -> Option<GpmHeading<'_>> {
    let mut rest = text;
    let mut line = || {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        Some(line.trim())
    };
    let domains: usize = line()?.parse().ok().filter(|domains| (1..=3).contains(domains))?;
    let numbers =
        |line: &str| line.split(',').map(|cell| cell.trim().parse::<f64>().ok()).collect::<Option<Vec<_>>>();
    let defaults = numbers(line()?)?;
    let counts = numbers(line()?)?;
    let components: Vec<&str> = line()?.split(',').map(str::trim).collect();
    let fits = defaults.len() == domains && counts.iter().sum::<f64>() == components.len() as f64;
    fits.then_some(GpmHeading { domains, components, body: rest })
}

/// Where utilisations begin among names that [`GpmHeading::names`] gave.
pub(super) fn first_utilisation(names: &[String]) -> usize {
    let is_clock = |name: &&String| name.ends_with(" clock");
    let first = names.iter().position(|name| is_clock(&name)).unwrap_or(0);
    first + names.iter().filter(is_clock).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisations_stand_behind_the_clocks() {
        let heading = GpmHeading { domains: 2, components: vec!["l2", "dram"], body: "" };
        let (named, plain) = (heading.names(6), heading.names(5));
        assert_eq!(named, ["name", "power", "core clock", "memory clock", "l2", "dram"]);
        assert_eq!(plain, named[1..]);
        assert_eq!((first_utilisation(&named), first_utilisation(&plain)), (4, 3));
    }
}
