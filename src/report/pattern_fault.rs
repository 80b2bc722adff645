//! What is wrong with a regular expression, in a line.

/// What is wrong with a regular expression, without the parser's picture of the place, which takes several lines.
pub fn pattern_fault(error: &regex::Error) -> String {
    let told = error.to_string();
    told.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_a_line() {
        for (pattern, fault) in [("(", "unclosed group"), ("a{9999999}", "Compiled regex exceeds")] {
            let said = pattern_fault(&regex::Regex::new(pattern).expect_err("no pattern"));
            assert!(said.starts_with(fault) && !said.contains('\n'), "{said}");
        }
    }
}
