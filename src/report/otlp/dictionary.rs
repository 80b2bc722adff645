//! What all profiles of a file share: code, texts and attributes. The first entry of each table stands for nothing.

use rustc_hash::FxHashMap;

use super::attributes::{Value, of_thread};
use super::field;
use crate::label::Label;
use crate::profile::{AddressId, Profile};
use crate::report::frames::module_label;
use crate::report::protobuf::Message;
use crate::report::texts::Texts;
use crate::symbolize::Symbols;

/// All tables but that of stacks, which may be too many for memory.
pub struct Dictionary {
    pub texts: Texts,
    tables: Message,
    attributes: Message,
    next_attribute: u64,
    known: FxHashMap<(u64, Vec<u8>), u64>,
    /// By thread of the profile: its attributes.
    of_threads: Vec<Vec<u64>>,
}

impl Dictionary {
    pub fn new(profile: &Profile, symbols: &Symbols) -> Self {
        let mut dictionary = Self {
            texts: Texts::new(),
            tables: Message::default(),
            attributes: Message::default(),
            next_attribute: 1,
            known: FxHashMap::default(),
            of_threads: Vec::new(),
        };
        let nothing = Message::default();
        dictionary.attributes.message(field::dictionary::ATTRIBUTE_TABLE, &nothing);
        dictionary.tables.message(field::dictionary::LINK_TABLE, &nothing);
        dictionary.modules(profile);
        dictionary.code(profile, symbols);
        for thread in &profile.threads {
            let attributes = of_thread(thread).into_iter();
            let attributes = attributes.map(|(key, value)| dictionary.attribute(key, &value)).collect();
            dictionary.of_threads.push(attributes);
        }
        dictionary
    }

    /// The attributes of a thread.
    pub fn of_thread(&self, thread: u32) -> impl Iterator<Item = u64> + '_ {
        self.of_threads[thread as usize].iter().copied()
    }

    /// All of it but stacks.
    pub fn finish(self) -> Message {
        let Self { texts, mut tables, attributes, .. } = self;
        tables.append(&attributes);
        for text in texts.all() {
            tables.text(field::dictionary::STRING_TABLE, text);
        }
        tables
    }

    fn attribute(&mut self, key: &str, value: &Value<'_>) -> u64 {
        let (key, value) = (self.texts.place(key), value.message());
        if let Some(known) = self.known.get(&(key, value.as_bytes().to_vec())) {
            return *known;
        }
        let mut attribute = Message::default();
        attribute.number(field::attribute::KEY, key).message(field::attribute::VALUE, &value);
        self.attributes.message(field::dictionary::ATTRIBUTE_TABLE, &attribute);
        self.known.insert((key, value.as_bytes().to_vec()), self.next_attribute);
        self.next_attribute += 1;
        self.next_attribute - 1
    }

    fn modules(&mut self, profile: &Profile) {
        self.tables.message(field::dictionary::MAPPING_TABLE, &Message::default());
        for module in &profile.modules {
            let build_id = module.build_id.as_ref().map(|id| {
                let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
                self.attribute("process.executable.build_id.gnu", &Value::Text(&hex))
            });
            let mut mapping = Message::default();
            mapping.number(field::mapping::FILENAME, self.texts.place(module_label(module).as_str()));
            mapping.numbers(field::mapping::ATTRIBUTES, build_id);
            self.tables.message(field::dictionary::MAPPING_TABLE, &mapping);
        }
    }

    fn code(&mut self, profile: &Profile, symbols: &Symbols) {
        let nothing = Message::default();
        let mut file_of_function = vec![0; symbols.functions().len()];
        self.tables.message(field::dictionary::LOCATION_TABLE, &nothing);
        for (index, address) in profile.addresses.iter().enumerate() {
            let mut location = Message::default();
            location.number(field::location::MAPPING, u64::from(address.module.0) + 1);
            location.number(field::location::ADDRESS, address.address);
            // Innermost first.
            for frame in symbols.frames(AddressId(index as u32)).iter().rev() {
                if let Some(file) = frame.file {
                    file_of_function[frame.function.0 as usize] =
                        self.texts.place(Label::new(symbols.file(file)).as_str());
                }
                let mut line = Message::default();
                line.number(field::line::FUNCTION, u64::from(frame.function.0) + 1);
                line.number(field::line::LINE, frame.line.map_or(0, u64::from));
                location.message(field::location::LINES, &line);
            }
            self.tables.message(field::dictionary::LOCATION_TABLE, &location);
        }
        self.tables.message(field::dictionary::FUNCTION_TABLE, &nothing);
        for (function, file) in symbols.functions().iter().zip(file_of_function) {
            let names =
                [&function.name, &function.raw_name].map(|name| self.texts.place(Label::new(name).as_str()));
            let mut described = Message::default();
            described
                .number(field::function::NAME, names[0])
                .number(field::function::SYSTEM_NAME, names[1])
                .number(field::function::FILENAME, file);
            self.tables.message(field::dictionary::FUNCTION_TABLE, &described);
        }
    }
}
