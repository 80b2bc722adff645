//! The machine code of the functions that took most, as far as a page has room for it.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::report::Weight;
use crate::report::annotate::{AnnotatedFunction, AnnotatedInstruction, Annotation};
use crate::report::select::Totals;
use crate::units::Joules;

/// So many instructions are shown of a function: those that took most, and what stands around them.
const MOST_INSTRUCTIONS: usize = 400;
/// Instructions that are shown on both sides of each that took something, where not all are.
const CONTEXT: usize = 8;
/// An instruction is shown so far.
const LONGEST: usize = 120;
/// All code in a page, in bytes of its JSON, about.
const MOST_BYTES: usize = 120_000;
/// Bytes of an instruction's numbers there, about, and of those that took something.
const BYTES_OF_NUMBERS: usize = 12;
const BYTES_OF_OWN: usize = 28;

/// So many functions are looked at.
pub const MOST_FUNCTIONS: usize = 40;

/// Machine code of a page.
#[derive(Serialize)]
pub struct Code {
    /// What instructions say, where they come from, and names of what was inlined; each text once.
    texts: Vec<Label>,
    functions: Vec<CodeOfFunction>,
    /// Functions that took something themselves and are not here, and their weight.
    left_out: (usize, u64),
}

/// The code of a function. Numbers of texts count from 1, 0 is none.
#[derive(Serialize)]
struct CodeOfFunction {
    name: Label,
    module: Label,
    own: u64,
    /// How many instructions it has; fewer may be here.
    all: usize,
    /// Of each instruction here: bytes from the one before, and what it says.
    instructions: Vec<i64>,
    /// The places in that list, counted in instructions, behind which something was left out.
    gaps: Vec<usize>,
    /// From which instruction on the place in the source is another, and which.
    places: Vec<usize>,
    /// From which instruction on another function was inlined, and which.
    inlined: Vec<usize>,
    /// Of those that took something: which, weight, standard error, samples, and milliwatts; 0 where nobody knows.
    taken: Vec<u64>,
    /// Why there is no code.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Label>,
}

impl Code {
    /// Of annotated functions, the heaviest first; `unit` is what a page's weights are counted in.
    pub fn new(annotation: &Annotation, unit: f64) -> Self {
        let mut made = Self { texts: Vec::new(), functions: Vec::new(), left_out: (0, 0) };
        let mut texts = Texts::default();
        let numbers = Numbers {
            unit,
            has_joules: annotation.weight == Weight::Joules,
            has_watts: !annotation.is_by_time,
            weight: annotation.weight,
        };
        let (names, own) = &annotation.left_out;
        let mut left_out = (names.len(), *own);
        let mut bytes = 0;
        for function in &annotation.functions {
            if bytes < MOST_BYTES {
                let before = texts.bytes;
                let code = CodeOfFunction::new(function, &numbers, &mut texts);
                bytes += texts.bytes - before;
                bytes += code.instructions.len() / 2 * BYTES_OF_NUMBERS + code.taken.len() / 5 * BYTES_OF_OWN;
                made.functions.push(code);
            } else {
                left_out.0 += 1;
                left_out.1 += function.own;
            }
        }
        made.left_out = (left_out.0, numbers.whole(left_out.1.weight(annotation.weight)));
        made.texts = texts.all;
        made
    }
}

impl CodeOfFunction {
    fn new(function: &AnnotatedFunction, numbers: &Numbers, texts: &mut Texts) -> Self {
        let mut made = Self {
            name: function.name.clone(),
            module: function.module.clone(),
            own: numbers.whole(function.own.weight(numbers.weight)),
            all: function.instructions.len(),
            instructions: Vec::new(),
            gaps: Vec::new(),
            places: Vec::new(),
            inlined: Vec::new(),
            taken: Vec::new(),
            why: function.no_code.clone(),
        };
        let (mut at, mut before) = (0, None);
        for index in chosen(&function.instructions, numbers.weight) {
            let instruction = &function.instructions[index];
            let here = made.instructions.len() / 2;
            if before.is_some_and(|before| before + 1 != index) {
                made.gaps.push(here);
            }
            before = Some(index);
            // Pieces of a function need not lie one behind the other.
            let text = instruction.text.as_ref().map_or(0, |text| texts.number(text.as_str()));
            made.instructions.extend([(instruction.at as i64).wrapping_sub(at), text as i64]);
            at = instruction.at as i64;
            let place = instruction.place.as_ref();
            let place = place.map_or(0, |(file, line)| texts.number(&format!("{}:{line}", file.file_name())));
            note_change(&mut made.places, here, place);
            let inlined = instruction.inlined.as_ref().map_or(0, |callee| texts.number(callee.as_str()));
            note_change(&mut made.inlined, here, inlined);
            if !instruction.own.is_empty() {
                made.taken.extend(numbers.of(here, &instruction.own));
            }
        }
        made
    }
}

/// Adds to pairs of places and values, where the value is another than before; in the beginning it is 0.
fn note_change(pairs: &mut Vec<usize>, here: usize, value: usize) {
    if pairs.last().copied().unwrap_or(0) != value {
        pairs.extend([here, value]);
    }
}

/// The instructions that are shown of a function, in their order.
fn chosen(instructions: &[AnnotatedInstruction], weight: Weight) -> Vec<usize> {
    if instructions.len() <= MOST_INSTRUCTIONS {
        return (0..instructions.len()).collect();
    }
    let weigh = |index: usize| instructions[index].own.weight(weight);
    let mut hottest: Vec<usize> =
        (0..instructions.len()).filter(|&index| !instructions[index].own.is_empty()).collect();
    hottest.sort_by(|&a, &b| weigh(b).total_cmp(&weigh(a)).then(a.cmp(&b)));
    let mut is_chosen = vec![false; instructions.len()];
    let mut count = 0;
    for index in hottest {
        let around = index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(instructions.len());
        for chosen in &mut is_chosen[around] {
            count += usize::from(!*chosen);
            *chosen = true;
        }
        if count >= MOST_INSTRUCTIONS {
            break;
        }
    }
    (0..instructions.len()).filter(|&index| is_chosen[index]).collect()
}

/// How numbers of a page are written.
struct Numbers {
    unit: f64,
    has_joules: bool,
    has_watts: bool,
    weight: Weight,
}

impl Numbers {
    fn whole(&self, weight: f64) -> u64 {
        (weight * self.unit).round().max(0.0) as u64
    }

    fn of(&self, here: usize, own: &Totals) -> [u64; 5] {
        let error = if self.has_joules { own.standard_error() } else { Joules::ZERO };
        let watts = own.watts().filter(|_| self.has_joules && self.has_watts);
        let milliwatts = watts.map_or(0.0, |watts| watts.as_watts() * 1e3);
        [
            here as u64,
            self.whole(own.weight(self.weight)),
            self.whole(error.as_joules()),
            own.samples,
            milliwatts.round().max(0.0) as u64,
        ]
    }
}

/// Texts, each of them once.
#[derive(Default)]
struct Texts {
    all: Vec<Label>,
    numbers: FxHashMap<Label, usize>,
    bytes: usize,
}

impl Texts {
    /// The number of a text, from 1 on.
    fn number(&mut self, text: &str) -> usize {
        let text: String = text.chars().take(LONGEST).collect();
        let label = Label::new(&text);
        if let Some(&number) = self.numbers.get(&label) {
            return number;
        }
        self.bytes += text.len() + 3;
        self.all.push(label.clone());
        self.numbers.insert(label, self.all.len());
        self.all.len()
    }
}
