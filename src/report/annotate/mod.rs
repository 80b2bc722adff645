//! Functions line by line and instruction by instruction, with what each took itself.
//!
//! What is summed is what `report --by function` sums: own joules of samples whose innermost code lies in the function.
//! With inlined functions told apart, it is the innermost inlined function that counts, wherever it was put; so it is of
//! functions that are nowhere but inlined into others.

mod annotation;
mod code;
mod disassemble;
mod errors;
mod find;
mod margin;
mod missing_names;
mod own_code;
mod precision;
mod source;
mod text;

use regex::Regex;

use super::error::ReportError;
use super::nothing_selected;
use super::select::Selection;
use crate::profile::ProfileParts;
use crate::symbolize::{Symbolizer, Symbols};
pub use annotation::{AnnotatedFunction, AnnotatedInstruction, AnnotatedLine, Annotation};
pub use code::CodeOptions;
pub use disassemble::Syntax;
pub use find::FoundBy;
use find::functions_named;
use own_code::OwnCode;
pub use precision::of_event as precision_of_event;
pub use source::Sources;
pub use text::{TextOptions, View, write};

/// What to annotate.
#[derive(Debug, Clone)]
pub struct AnnotateOptions {
    /// The functions: a name, the end of a path, or a regular expression.
    pub function: String,
    /// Only functions in modules that match.
    pub module: Option<Regex>,
    /// Which samples count, and what weighs.
    pub selection: Selection,
    /// How code is shown.
    pub code: CodeOptions,
    /// So many functions at most, the heaviest; all if there is no limit.
    pub limit: Option<usize>,
}

/// Annotates the functions of a name in a profile, whole or in parts.
///
/// # Errors
/// If no function is meant, or the options name something that the profile does not have.
pub fn annotate(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    options: &AnnotateOptions,
) -> Result<Annotation, ReportError> {
    let of_name = |code: CodeOptions, symbolizer: &mut Symbolizer| {
        annotate_named(parts, symbols, symbolizer, &AnnotateOptions { code, ..options.clone() })
    };
    match of_name(options.code, symbolizer) {
        Err(error @ ReportError::NothingItself { .. }) if !options.code.inline => {
            let inline = CodeOptions { inline: true, ..options.code };
            match of_name(inline, symbolizer) {
                Ok(annotation) => Ok(Annotation { only_inlined: true, ..annotation }),
                Err(_) => Err(error),
            }
        }
        annotation => annotation,
    }
}

/// The same, with inlined functions told apart or not, as the options say.
fn annotate_named(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    options: &AnnotateOptions,
) -> Result<Annotation, ReportError> {
    let own = OwnCode::new(parts, symbols, &options.selection, options.code.inline)?;
    let is_module = |module: &str| options.module.as_ref().is_none_or(|pattern| pattern.is_match(module));
    let weights = own.weights();
    let selection = &options.selection;
    let of_selected = selection.is_of_a_part();
    if weights.iter().all(|weight| *weight <= 0.0) {
        let why = nothing_selected::why(selection, parts.profile(), symbols);
        return Err(ReportError::NothingSelected(why));
    }
    let found = functions_named(&own.frames, &weights, &options.function, is_module, of_selected);
    if let Some(error) = missing_names::instead_of(&found, &own, &weights, &options.function) {
        return Err(error);
    }
    let (found, by) = found?;
    let annotation = own.annotate(symbolizer, found, options.limit, options.code);
    Ok(Annotation { asked: Some((options.function.clone(), by)), ..annotation })
}

/// Annotates the heaviest functions of a profile: those that took any of its joules themselves, with all that was
/// inlined into them.
///
/// # Errors
/// If the selection names something that the profile does not have.
pub fn annotate_heaviest(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    symbolizer: &mut Symbolizer,
    selection: &Selection,
    most: usize,
) -> Result<Annotation, ReportError> {
    let code = CodeOptions { inline: false, syntax: Syntax::default() };
    let own = OwnCode::new(parts, symbols, selection, code.inline)?;
    let weights = own.weights();
    let mut heaviest: Vec<usize> = (0..weights.len()).filter(|&index| weights[index] > 0.0).collect();
    heaviest.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
    Ok(own.annotate(symbolizer, heaviest, Some(most), code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Label;
    use crate::report::Style;
    use crate::report::fixture::{Fixture, Spent, sample_profile};
    use crate::symbolize::SymbolizeOptions;
    use crate::units::Joules;

    fn named(function: &str, inline: bool) -> Result<Annotation, ReportError> {
        let (profile, symbols) = sample_profile();
        annotated(&profile, &symbols, function, inline)
    }

    fn annotated(
        profile: &crate::profile::Profile,
        symbols: &Symbols,
        function: &str,
        inline: bool,
    ) -> Result<Annotation, ReportError> {
        let options = AnnotateOptions {
            function: function.to_owned(),
            module: None,
            selection: Selection::default(),
            code: CodeOptions { inline, syntax: Syntax::default() },
            limit: None,
        };
        annotate(profile, symbols, &mut Symbolizer::new(SymbolizeOptions::default()), &options)
    }

    fn text(annotation: &Annotation) -> String {
        let options = TextOptions { view: View::Line, context: 2, hottest: 5, style: Style::default() };
        let mut out = Vec::new();
        write(annotation, options, &mut Sources::new(Vec::new(), None), &mut out)
            .expect("a vector takes all");
        String::from_utf8(out).expect("text")
    }

    /// All of `mix` lies in `work`: 9.5 J of the clock's samples and 4 J of the instructions'.
    #[test]
    fn a_function_that_is_only_inlined_has_its_lines_in_its_callers() {
        let found = named("mix", false).expect("it took something");
        assert!(found.only_inlined);
        let [mix] = &found.functions[..] else { panic!("{:?}", found.functions) };
        assert_eq!((mix.name.as_str(), mix.own.joules), ("mix", Joules::from_joules(13.5)));
        let places: Vec<_> = mix.lines.iter().filter_map(|line| line.place.clone()).collect();
        assert_eq!(places, [(Label::new("src/mix.h"), 7)]);
        assert_eq!(mix.instructions[0].within.as_ref().map(Label::as_str), Some("work"));
        let said = text(&found);
        assert!(said.starts_with("inlined into its callers: its lines are those of all copies"), "{said}");
        // Of its caller that is a part, and what the caller has of its own is no part of it.
        let work = named("work", false).expect("it took something");
        assert!(!work.only_inlined && work.functions[0].own.joules == Joules::from_joules(13.5));
    }

    #[test]
    fn a_whole_name_wins_over_a_part_of_one() {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, crate::hardware::Method::Measured, "meter", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        let mut cell = |stack: &str, joules| {
            fixture.cell(0, 0, 0, stack, Spent { samples: 10, millis: 10, joules: &[joules] });
        };
        cell("/bin/app`app::main  /bin/app`domain_loop", 5.0);
        cell("/bin/app`app::main  /bin/app`remainder", 3.0);
        cell("/bin/app`app::main  /bin/app`caller>helper", 2.0);
        cell("/bin/app`app::main  /bin/app`helper", 1.0);
        let (profile, symbols) = fixture.finish();
        let of = |name| annotated(&profile, &symbols, name, false);
        let error = of("main").map(|found| text(&found)).expect_err("it took nothing").to_string();
        assert!(error.contains("\"app::main\" took nothing itself"), "{error}");
        let parts = text(&of("mai").expect("they took something"));
        assert!(
            parts.starts_with("no function is called mai: 2 have it in their names, the heaviest first: domain_loop, remainder\n"),
            "{parts}"
        );
        let one = text(&of("domain").expect("it took something"));
        assert!(one.starts_with("no function is called domain: domain_loop has it in its name\n"), "{one}");
        let pattern = text(&of("^[dr]").expect("they took something"));
        assert!(
            pattern.starts_with("2 functions match ^[dr], the heaviest first: domain_loop, remainder\n"),
            "{pattern}"
        );
        // What was inlined elsewhere is told, and is not among its own.
        let helper = of("helper").expect("it took something");
        let [function] = &helper.functions[..] else { panic!("{:?}", helper.functions) };
        assert_eq!([function.own, function.elsewhere].map(|took| took.joules.as_joules()), [1.0, 2.0]);
        let said = text(&helper);
        assert!(said.contains("inlined into others it took 2.000 J more: --inline shows that"), "{said}");
    }
}
