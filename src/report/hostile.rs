//! Names that try to break out of the format they are written in.

use crate::profile::Profile;
use proptest::prelude::*;

use super::fixture::{Fixture, Spent};
use super::flamegraph::FlamegraphOptions;
use super::style::Style;
use super::tree::{CallTree, Root, TreeOptions};
use super::*;
use crate::hardware::Method;
use crate::label::Label;
use crate::symbolize::Symbols;

const ATTACKS: [&str; 22] = [
    "\x1b]0;title\x07\x1b[2J\x1b[31m",
    "\u{9b}31m\u{90}\u{9c}",
    "<script>alert(1)</script>",
    "]]><script>alert(1)</script><![CDATA[",
    "--><script>alert(1)</script><!--",
    "\" onload=\"alert(1)",
    "' onload='alert(1)",
    "&lt;b&gt;&#0;&unknown;",
    "line\nbreak\r\nand more",
    "a;b;c",
    "a 12",
    "# comment",
    "=HYPERLINK(\"http://x\",\"y\")",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\u{202e}gnp.exe\u{2066}",
    "\u{feff}\u{200b}\u{2028}\u{2029}",
    "\u{fffe}\u{ffff}\u{0}",
    "{\"json\": [1, 2",
    "../../../etc/passwd",
    "",
];

/// Attacks, random text, lossily decoded bytes, and names of any length.
fn hostile_name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(ATTACKS.to_vec()).prop_map(str::to_owned),
        any::<String>(),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        (prop::sample::select(ATTACKS.to_vec()), 1usize..3000).prop_map(|(text, times)| text.repeat(times)),
    ]
}

/// One profile where all names are hostile: two functions, module, thread, process, domain, source,
/// event, file and warning.
fn profile(names: &[String]) -> (Profile, Symbols) {
    let mut fixture = Fixture::default();
    fixture.domain(&names[0], None, Method::Measured, &names[1], [1.0, 0.5, 0.25, 0.25]);
    fixture.event(&names[2], 1);
    fixture.thread(1, 1, &names[3], &names[4]);
    // These mean something to the fixture, not to the formats.
    let plain = |name: &str| name.replace(['>', '@'], "?");
    let (module, outer, inner) = (&names[5], plain(&names[6]), plain(&names[7]));
    let inner = format!("{inner}@{}:7", names[8].replace(['>', ':'], "?"));
    let spent = Spent { samples: 3, millis: 3, joules: &[2.0] };
    fixture.cell_of(0, 0, 0, &[(module, &outer), (module, &inner)], spent);
    fixture.profile.warnings.push(names[9].clone());
    fixture.finish()
}

fn profile_of_plain_names() -> (Profile, Symbols) {
    let names: Vec<String> = (0..10).map(|index| format!("name{index}")).collect();
    profile(&names)
}

fn hostile_profile() -> impl Strategy<Value = (Profile, Symbols)> {
    prop::collection::vec(hostile_name(), 10).prop_map(|names| profile(&names))
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), ReportError>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes all");
    String::from_utf8(out).expect("text")
}

fn is_harmless_line(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
    })
}

/// Reads an SVG picture as XML: the elements' names and the texts of all titles.
fn read_svg(svg: &str) -> (Vec<String>, Vec<String>) {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let (mut elements, mut titles, mut title) = (Vec::new(), Vec::new(), None);
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
                if name == "title" {
                    title = Some(String::new());
                }
                elements.push(name);
            }
            Event::Empty(empty) => elements.push(String::from_utf8_lossy(empty.name().as_ref()).into_owned()),
            Event::End(end) if end.name().as_ref() == b"title" => titles.extend(title.take()),
            Event::Text(part) => {
                if let Some(title) = &mut title {
                    title.push_str(&part.decode().expect("UTF-8"));
                }
            }
            Event::GeneralRef(entity) => {
                let name = entity.decode().expect("UTF-8");
                let meaning =
                    quick_xml::escape::resolve_predefined_entity(&name).expect("a predefined entity");
                if let Some(title) = &mut title {
                    title.push_str(meaning);
                }
            }
            Event::Eof => return (elements, titles),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn terminals_get_lines_of_visible_text((profile, symbols) in hostile_profile()) {
        for by in [Grouping::Function, Grouping::Line, Grouping::Module, Grouping::Thread, Grouping::Event, Grouping::Domain] {
            let report = Report::new(&profile, &symbols, &Options { by, ..Options::default() }).expect("valid");
            let table = text(|out| table::write(&report, &Style { children: true, ..Style::default() }, out));
            prop_assert!(table.lines().all(is_harmless_line), "{table:?}");
        }
    }

    #[test]
    fn json_says_the_names((profile, symbols) in hostile_profile()) {
        let report = Report::new(&profile, &symbols, &Options::default()).expect("valid");
        let json = text(|out| json::write(&report, out));
        prop_assert!(json.lines().all(is_harmless_line));
        let json: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
        for (row, json) in report.rows.iter().zip(json["rows"].as_array().expect("rows")) {
            prop_assert_eq!(json["name"].as_str(), Some(row.name.as_str()));
        }
        prop_assert_eq!(json["rows"].as_array().map(Vec::len), Some(report.rows.len()));
    }

    #[test]
    fn csv_has_its_cells_and_no_formulas((profile, symbols) in hostile_profile()) {
        let report = Report::new(&profile, &symbols, &Options { by: Grouping::Line, ..Options::default() }).expect("valid");
        let csv = text(|out| super::csv::write(&report, out));
        let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
        let columns = reader.headers().expect("a head").len();
        let mut rows = 0;
        for record in reader.records() {
            let record = record.expect("a row");
            prop_assert_eq!(record.len(), columns);
            for cell in record.iter().take(3) {
                prop_assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
                prop_assert!(is_harmless_line(cell));
            }
            rows += 1;
        }
        prop_assert_eq!(rows, report.rows.len());
    }

    #[test]
    fn folded_stacks_have_their_frames((profile, symbols) in hostile_profile()) {
        let options = TreeOptions { root: Root::Thread, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
        let folded = text(|out| folded::write(&tree, out));
        prop_assert_eq!(folded.lines().count(), 1);
        let (path, number) = folded.trim_end().rsplit_once(' ').expect("a number");
        prop_assert_eq!(number, "2000000");
        // Thread, outer, inner.
        prop_assert_eq!(path.split(';').count(), 3);
        prop_assert!(is_harmless_line(path));
    }

    #[test]
    fn a_page_has_only_its_own_elements((profile, symbols) in hostile_profile(), subject in hostile_name()) {
        let subject = Some(subject);
        let tree_options = TreeOptions { subject: subject.clone(), root: Root::Thread, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &tree_options).expect("there are samples");
        let report = Report::new(&profile, &symbols, &Options { subject, ..Options::default() }).expect("valid");
        let page = text(|out| html::write(&tree, &report, out));
        let tags = |page: &str| page.matches('<').count();
        // The template's elements, and what the script and the style have of `<`.
        let (plain_profile, plain_symbols) = profile_of_plain_names();
        let plain_tree = CallTree::new(&plain_profile, &plain_symbols, &TreeOptions::default()).expect("samples");
        let plain_report = Report::new(&plain_profile, &plain_symbols, &Options::default()).expect("valid");
        let plain_page = text(|out| html::write(&plain_tree, &plain_report, out));
        prop_assert_eq!(tags(&page), tags(&plain_page));
        prop_assert_eq!(page.matches("<script").count(), 2);
        let json = page.split_once("id=\"data\">").expect("data").1.split_once("</script>").expect("its end").0;
        let data: serde_json::Value = serde_json::from_str(json).expect("JSON");
        prop_assert_eq!(data["slices"]["own"][0].as_array().map(Vec::len), Some(2));
        let names = data["functions"]["name"].as_array().expect("names").iter().filter_map(|name| name.as_str());
        let expected = Label::new(&format!("{} (1/1)", profile.threads[0].name));
        prop_assert!(names.into_iter().any(|name| name == expected.as_str()));
    }

    #[test]
    fn svg_has_only_its_own_elements((profile, symbols) in hostile_profile(), title in hostile_name()) {
        let options = TreeOptions { root: Root::Thread, ..TreeOptions::default() };
        let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
        for plain in [true, false] {
            let look = FlamegraphOptions { title: Some(title.clone()), plain, ..FlamegraphOptions::default() };
            let svg = text(|out| flamegraph::write(&tree, &look, out));
            let (elements, titles) = read_svg(&svg);
            let count = |name| elements.iter().filter(|element| *element == name).count();
            prop_assert_eq!((count("script"), count("svg"), count("g"), count("title")), (1, 2, 4, 4));
            let thread = Label::new(&format!("{} (1/1)", profile.threads[0].name));
            let expected = format!("{} (2.000 J, 100.00%)", thread.folded());
            prop_assert!(titles.contains(&expected), "{expected:?} is not in {titles:?}");
            // XML 1.0 has no way to write these.
            let forbidden = |c: char| (c.is_control() && c != '\n') || u32::from(c) & 0xfffe == 0xfffe;
            prop_assert!(!svg.chars().any(forbidden));
        }
    }
}

#[test]
fn a_name_of_100_kilobytes_stays_one_row() {
    let names: Vec<String> = (0..10).map(|index| format!("{index}{}", "long".repeat(25_000))).collect();
    let (profile, symbols) = profile(&names);
    let report = Report::new(&profile, &symbols, &Options::default()).expect("valid");
    assert_eq!(report.rows.len(), 2);
    let json = text(|out| json::write(&report, out));
    assert!(json.len() < 60_000, "{} bytes", json.len());
    let table = text(|out| table::write(&report, &Style::default(), out));
    let rows = table.lines().filter(|line| line.contains("longlong") && line.contains('%'));
    assert!(rows.clone().count() > 0 && rows.into_iter().all(|line| line.chars().count() <= 80));
}
