//! A long recording without the time that it takes to make: a shorter one over and over, each time later, as
//! if its program had run on.
//!
//! What grows in a recording goes on growing: times, joules, CPU times. The program begins in the first
//! repetition and ends in the last. A longer run would have come upon new stacks too, so every fourth sample
//! of each repetition goes ways of its own.

mod growth;

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::ensure;
use eprof::recording::Recording;
use eprof::recording::metadata::METADATA_EVENT;
use perf_data::RawRecord;
use perf_data::attr::EventAttr;
use perf_data::format::{
    FILE_HEADER_SIZE, RECORD_HEADER_SIZE, SECTION_SIZE, feature, record_type, sample_type,
};
use perf_data::record::{Callchain, Record, RecordContext};

use growth::Growth;

/// One sample of so many goes another way in each repetition.
const SAMPLES_PER_NEW_STACK: u64 = 4;
/// Callchain entries from here on are no addresses but say where the next ones lie (`PERF_CONTEXT_MAX`).
const FIRST_CONTEXT_MARK: u64 = -4095_i64 as u64;
/// Where the header keeps the place and size of the records, and which sections stand behind them.
const DATA_AT: usize = 40;
const SECTION_BITS_AT: usize = 72;

/// Writes a recording that holds the records of `input` so many times. Memory does not grow with it.
///
/// # Errors
/// If a file cannot be read or written, or `input` is no recording that was finished and has times.
pub fn repeat(input: &Path, output: &Path, times: u64) -> anyhow::Result<()> {
    let recording = Recording::open(input)?;
    let growth = Growth::of(&recording)?;
    let file = File::open(input)?;
    let header = Header::read(&file)?;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(output)?);
    out.write_all(&bytes_at(&file, 0..header.data_start)?)?;
    for repetition in 0..times {
        write_records(&recording, &growth, repetition, repetition + 1 == times, &mut out)?;
    }
    let data_end = out.stream_position()?;
    header.write_sections(&file, data_end, growth.time * (times - 1), &mut out)?;
    out.seek(SeekFrom::Start(DATA_AT as u64 + 8))?;
    out.write_all(&(data_end - header.data_start).to_le_bytes())?;
    // What is still being written would disturb what is measured next.
    out.into_inner()?.sync_data()?;
    Ok(())
}

fn write_records(
    recording: &Recording,
    growth: &Growth,
    repetition: u64,
    is_last: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut records = recording.records();
    let mut body = Vec::new();
    let mut samples = 0;
    while let Some(raw) = records.next_raw()? {
        let context = recording.decoder().context(&raw);
        if !is_wanted(recording, &raw, &context, repetition == 0, is_last) {
            continue;
        }
        body.clear();
        body.extend_from_slice(raw.body);
        if repetition > 0 {
            let record = recording.decoder().decode(&raw, &context)?;
            if let (Some(event), Record::Sample(sample)) = (context.event, record) {
                if let Some(later) = growth.reading(event, sample.raw, repetition) {
                    // Raw data are the last field of these samples; their size stands before them.
                    body.truncate(raw.body.len() - sample.raw.len() - 4);
                    body.extend((later.len() as u32).to_le_bytes());
                    body.extend(later);
                } else if !sample.callchain.is_empty() {
                    samples += 1;
                    if samples % SAMPLES_PER_NEW_STACK == 0 {
                        // The callchain is the last field of the others.
                        let start = raw.body.len() - 8 * sample.callchain.len();
                        go_another_way(sample.callchain, repetition, &mut body[start..]);
                    }
                }
            }
            if let (Some(time), Some(at)) = (context.time, time_at(recording, &raw, &context)) {
                let later = time.as_nanos() + repetition * growth.time;
                body[at..at + 8].copy_from_slice(&later.to_le_bytes());
            }
        }
        out.write_all(&raw.kind.to_le_bytes())?;
        out.write_all(&raw.misc.to_le_bytes())?;
        out.write_all(&((body.len() + RECORD_HEADER_SIZE) as u16).to_le_bytes())?;
        out.write_all(&body)?;
    }
    Ok(())
}

/// What is said once is said in the first repetition, a task's end in the last. Counters' final values are
/// those of one repetition only and left out.
fn is_wanted(
    recording: &Recording,
    raw: &RawRecord<'_>,
    context: &RecordContext,
    is_first: bool,
    is_last: bool,
) -> bool {
    match raw.kind {
        record_type::SAMPLE => {
            let event = context.event.and_then(|event| recording.events().get(event.0 as usize));
            is_first || event.is_some_and(|event| event.name != METADATA_EVENT)
        }
        record_type::FINISHED_ROUND
        | record_type::LOST
        | record_type::LOST_SAMPLES
        | record_type::THROTTLE
        | record_type::UNTHROTTLE => true,
        record_type::EXIT => is_last,
        record_type::READ => false,
        _ => is_first,
    }
}

/// Where a record's time stands in its body.
fn time_at(recording: &Recording, raw: &RawRecord<'_>, context: &RecordContext) -> Option<usize> {
    let event = context.event.map_or(0, |event| event.0 as usize);
    let EventAttr { sample_type: fields, .. } = recording.events().get(event)?.attr;
    let words = |mask: u64| 8 * (fields & mask).count_ones() as usize;
    match raw.kind {
        record_type::SAMPLE => Some(words(sample_type::IDENTIFIER | sample_type::IP | sample_type::TID)),
        ..record_type::USER_START => {
            let behind =
                sample_type::ID | sample_type::STREAM_ID | sample_type::CPU | sample_type::IDENTIFIER;
            raw.body.len().checked_sub(words(sample_type::TIME | behind))
        }
        _ => None,
    }
}

/// Puts into the middle of the program's part of a callchain the address that stands so many frames further
/// out: a path that the recording has not seen, of functions that it knows.
fn go_another_way(callchain: Callchain<'_>, frames: u64, entries: &mut [u8]) {
    let addresses: Vec<u64> = callchain.entries().collect();
    let is_mark = |address: &u64| *address >= FIRST_CONTEXT_MARK;
    let start = addresses.iter().rposition(is_mark).map_or(0, |mark| mark + 1);
    let program = &addresses[start..];
    let middle = program.len() / 2;
    if let Some(other) = (middle + frames as usize).checked_rem(program.len()) {
        let at = 8 * (start + middle);
        entries[at..at + 8].copy_from_slice(&program[other].to_le_bytes());
    }
}

/// Where a file keeps its records, and which sections stand behind them.
struct Header {
    data_start: u64,
    data_end: u64,
    sections: [u64; 4],
}

impl Header {
    fn read(file: &File) -> anyhow::Result<Self> {
        let header = bytes_at(file, 0..FILE_HEADER_SIZE)?;
        let word = |at: usize| word(&header, at);
        let sections = [0, 8, 16, 24].map(|at| word(SECTION_BITS_AT + at));
        ensure!(sections != [0; 4], "the recording is not finished");
        let data_start = word(DATA_AT);
        Ok(Self { data_start, data_end: data_start + word(DATA_AT + 8), sections })
    }

    /// Writes the sections of `file` behind `data_end`; the last sample's time is later by so many nanoseconds.
    fn write_sections(
        &self,
        file: &File,
        data_end: u64,
        later: u64,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        let mut bytes = bytes_at(file, self.data_end..file.metadata()?.len())?;
        let has = |number: usize| self.sections[number / 64] >> (number % 64) & 1 != 0;
        let mut place = 0;
        for number in (0..256).filter(|&number| has(number)) {
            let offset = word(&bytes, place);
            bytes[place..place + 8].copy_from_slice(&(offset - self.data_end + data_end).to_le_bytes());
            if number == feature::SAMPLE_TIME as usize {
                // Times of the first and of the last sample.
                let last = (offset - self.data_end) as usize + 8;
                let time = word(&bytes, last) + later;
                bytes[last..last + 8].copy_from_slice(&time.to_le_bytes());
            }
            place += SECTION_SIZE;
        }
        out.write_all(&bytes)?;
        Ok(())
    }
}

fn bytes_at(file: &File, range: std::ops::Range<u64>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
