//! What the Firefox Profiler requires of a profile in its processed format, version 55, in our own words: after
//! <https://github.com/firefox-devtools/profiler/blob/main/src/types/profile.ts>.

use std::collections::HashSet;

use serde_json::Value;

/// The rows of a table.
type Rows<'a> = &'a [Value];

/// All that is wrong with a profile.
pub fn faults(profile: &Value) -> Vec<String> {
    let mut checker = Checker { faults: Vec::new() };
    checker.profile(profile);
    checker.faults
}

struct Checker {
    faults: Vec<String>,
}

impl Checker {
    fn holds(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(fault());
        }
    }

    fn profile(&mut self, profile: &Value) {
        let meta = &profile["meta"];
        self.holds(meta["preprocessedProfileVersion"] == 55, || "another version".to_owned());
        for key in ["interval", "startTime", "processType", "stackwalk", "version"] {
            self.holds(meta[key].is_number(), || format!("meta.{key} is no number"));
        }
        self.holds(meta["interval"].as_f64().is_some_and(|interval| interval > 0.0), || {
            "no interval".to_owned()
        });
        self.holds(meta["product"].is_string(), || "no product".to_owned());
        self.holds(meta["symbolicated"] == true, || "symbols would be asked for".to_owned());
        let categories = self.categories(meta);
        let types = self.marker_types(meta);
        let threads = rows(&profile["threads"]);
        self.holds(!profile["threads"].is_null(), || "no threads".to_owned());
        let libs = rows(&profile["libs"]).len();
        for lib in rows(&profile["libs"]) {
            for key in ["arch", "name", "path", "debugName", "debugPath", "breakpadId"] {
                self.holds(lib[key].is_string(), || format!("lib.{key} of {lib}"));
            }
            self.holds(lib["codeId"].is_string() || lib["codeId"].is_null(), || format!("codeId of {lib}"));
        }
        let mut tids = HashSet::new();
        for thread in threads {
            self.thread(thread, &categories, libs, &types);
            self.holds(tids.insert(thread["tid"].to_string()), || format!("tid {} twice", thread["tid"]));
        }
        for key in ["initialVisibleThreads", "initialSelectedThreads"] {
            self.indices(key, rows(&meta[key]), threads.len(), false);
        }
        for counter in rows(&profile["counters"]) {
            self.counter(counter, threads);
        }
        for section in rows(&meta["extra"]) {
            self.holds(section["label"].is_string(), || "a section without a label".to_owned());
            for entry in rows(&section["entries"]) {
                let whole =
                    entry["label"].is_string() && entry["format"].is_string() && !entry["value"].is_null();
                self.holds(whole, || format!("an entry {entry}"));
            }
        }
    }

    /// The number of subcategories of each category.
    fn categories(&mut self, meta: &Value) -> Vec<usize> {
        let colors = [
            "transparent",
            "purple",
            "green",
            "orange",
            "yellow",
            "lightblue",
            "blue",
            "brown",
            "magenta",
            "red",
            "lightred",
            "darkgrey",
            "grey",
        ];
        let categories = rows(&meta["categories"]);
        self.holds(categories.iter().any(|category| category["color"] == "grey"), || {
            "no grey one".to_owned()
        });
        for category in categories {
            self.holds(category["name"].is_string(), || "a category without a name".to_owned());
            let color = category["color"].as_str().unwrap_or_default();
            self.holds(colors.contains(&color), || format!("color {color}"));
            self.holds(category["subcategories"][0] == "Other", || "the first subcategory".to_owned());
        }
        categories.iter().map(|category| rows(&category["subcategories"]).len()).collect()
    }

    /// Types of markers, and the keys of their fields.
    fn marker_types(&mut self, meta: &Value) -> Vec<(String, Vec<String>)> {
        let places = ["marker-chart", "marker-table", "timeline-overview", "timeline-memory", "stack-chart"];
        let mut types = Vec::new();
        for schema in rows(&meta["markerSchema"]) {
            for place in rows(&schema["display"]) {
                self.holds(places.contains(&place.as_str().unwrap_or_default()), || {
                    format!("display {place}")
                });
            }
            let fields = rows(&schema["fields"]);
            for field in fields {
                self.holds(field["key"].is_string() && field["format"].is_string(), || {
                    format!("field {field}")
                });
            }
            let keys: Vec<String> =
                fields.iter().filter_map(|field| Some(field["key"].as_str()?.to_owned())).collect();
            for label in ["chartLabel", "tooltipLabel", "tableLabel"] {
                let text = schema[label].as_str().unwrap_or_default();
                for named in text.split("{marker.data.").skip(1) {
                    let key = named.split('}').next().unwrap_or_default();
                    self.holds(keys.iter().any(|known| known == key), || format!("{label} names {key}"));
                }
            }
            types.push((schema["name"].as_str().unwrap_or_default().to_owned(), keys));
        }
        types
    }

    /// A table whose columns all have as many rows as it says.
    fn table<'a>(&mut self, thread: &'a Value, name: &str, columns: &[&str]) -> (&'a Value, usize) {
        let table = &thread[name];
        let length = table["length"].as_u64().map(|length| length as usize);
        self.holds(length.is_some(), || format!("{name} has no length"));
        let length = length.unwrap_or_default();
        for column in columns {
            let rows = table[column].as_array().map(Vec::len);
            self.holds(rows == Some(length), || format!("{name}.{column}: {rows:?} rows of {length}"));
        }
        (table, length)
    }

    fn indices(&mut self, name: &str, rows: Rows<'_>, end: usize, nullable: bool) {
        let fits = |row: &Value| match row.as_u64() {
            Some(index) => (index as usize) < end,
            None => nullable && row.is_null(),
        };
        let bad = rows.iter().find(|row| !fits(row));
        self.holds(bad.is_none(), || format!("{name}: {bad:?} of {end}"));
    }

    fn is_sorted(&mut self, name: &str, times: Rows<'_>) {
        let sorted = times.is_sorted_by_key(|time| time.as_f64());
        self.holds(sorted && times.iter().all(Value::is_number), || format!("{name} is not in order"));
    }

    fn thread(&mut self, thread: &Value, categories: &[usize], libs: usize, types: &[(String, Vec<String>)]) {
        for key in ["processType", "name", "pid", "processName"] {
            self.holds(thread[key].is_string(), || format!("thread.{key}"));
        }
        self.holds(thread["tid"].is_string() || thread["tid"].is_number(), || "thread.tid".to_owned());
        self.holds(thread["isMainThread"].is_boolean(), || "thread.isMainThread".to_owned());
        for key in ["processStartupTime", "registerTime"] {
            self.holds(thread[key].is_number(), || format!("thread.{key}"));
        }
        self.holds(thread["pausedRanges"].is_array(), || "thread.pausedRanges".to_owned());
        let strings = rows(&thread["stringArray"]);
        self.holds(strings.iter().all(Value::is_string), || "a string that is none".to_owned());
        let different: HashSet<&str> = strings.iter().filter_map(Value::as_str).collect();
        self.holds(different.len() == strings.len(), || "a string twice".to_owned());
        let strings = strings.len();

        let columns = ["prefix", "frame"];
        let (stacks, stack_count) = self.table(thread, "stackTable", &columns);
        let callers_first = rows(&stacks["prefix"])
            .iter()
            .zip(0..)
            .all(|(prefix, index)| prefix.is_null() || prefix.as_u64().is_some_and(|prefix| prefix < index));
        self.holds(callers_first, || "a caller behind what it calls".to_owned());

        let columns = [
            "address",
            "inlineDepth",
            "category",
            "subcategory",
            "func",
            "nativeSymbol",
            "innerWindowID",
            "line",
            "column",
        ];
        let (frames, frame_count) = self.table(thread, "frameTable", &columns);
        self.indices("stackTable.frame", rows(&stacks["frame"]), frame_count, false);
        self.indices("frameTable.category", rows(&frames["category"]), categories.len(), true);
        for (category, sub) in rows(&frames["category"]).iter().zip(rows(&frames["subcategory"])) {
            let of = category.as_u64().and_then(|category| categories.get(category as usize));
            self.holds(sub.as_u64() < of.map(|&of| of as u64), || format!("subcategory {sub}"));
        }
        let lines = rows(&frames["line"]);
        self.holds(lines.iter().all(|line| line.is_null() || line.is_u64()), || "a line".to_owned());
        self.holds(rows(&frames["address"]).iter().all(Value::is_i64), || "an address".to_owned());

        let columns = ["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"];
        let (functions, function_count) = self.table(thread, "funcTable", &columns);
        self.indices("frameTable.func", rows(&frames["func"]), function_count, false);
        self.indices("funcTable.name", rows(&functions["name"]), strings, false);
        self.indices("funcTable.fileName", rows(&functions["fileName"]), strings, true);

        let (resources, resource_count) =
            self.table(thread, "resourceTable", &["lib", "name", "host", "type"]);
        let in_bounds =
            |row: &Value| row.as_i64().is_some_and(|index| index >= -1 && index < resource_count as i64);
        let resource_column = rows(&functions["resource"]);
        self.holds(resource_column.iter().all(in_bounds), || "funcTable.resource".to_owned());
        self.indices("resourceTable.lib", rows(&resources["lib"]), libs, true);
        self.indices("resourceTable.name", rows(&resources["name"]), strings, false);
        let (_, symbols) =
            self.table(thread, "nativeSymbols", &["libIndex", "address", "name", "functionSize"]);
        self.indices("frameTable.nativeSymbol", rows(&frames["nativeSymbol"]), symbols, true);

        let (samples, _) = self.table(thread, "samples", &["stack", "time", "weight", "threadCPUDelta"]);
        self.indices("samples.stack", rows(&samples["stack"]), stack_count, true);
        self.is_sorted("samples.time", rows(&samples["time"]));
        let kind = samples["weightType"].as_str().unwrap_or_default();
        self.holds(["samples", "tracing-ms", "bytes"].contains(&kind), || format!("weightType {kind}"));
        let is_number = |row: &Value| row.as_f64().is_some_and(|number| number >= 0.0);
        for column in ["weight", "threadCPUDelta"] {
            self.holds(rows(&samples[column]).iter().all(is_number), || format!("samples.{column}"));
        }
        let idle = rows(&samples["stack"]).iter().zip(rows(&samples["weight"]));
        let counted = idle.filter(|(stack, _)| stack.is_null()).all(|(_, weight)| weight == 0);
        self.holds(counted, || "a weight without a stack".to_owned());
        self.markers(thread, strings, categories.len(), types);
    }

    fn markers(
        &mut self,
        thread: &Value,
        strings: usize,
        categories: usize,
        types: &[(String, Vec<String>)],
    ) {
        let columns = ["data", "name", "startTime", "endTime", "phase", "category"];
        let (markers, _) = self.table(thread, "markers", &columns);
        self.indices("markers.name", rows(&markers["name"]), strings, false);
        self.indices("markers.category", rows(&markers["category"]), categories, false);
        self.indices("markers.phase", rows(&markers["phase"]), 4, false);
        for (start, end) in rows(&markers["startTime"]).iter().zip(rows(&markers["endTime"])) {
            self.holds(start.as_f64() <= end.as_f64(), || format!("a marker from {start} to {end}"));
        }
        for data in rows(&markers["data"]) {
            let of_type = types.iter().find(|(name, _)| data["type"] == name.as_str());
            let has_fields =
                of_type.is_some_and(|(_, keys)| keys.iter().all(|key| !data[key.as_str()].is_null()));
            self.holds(has_fields, || format!("a marker's data {data}"));
        }
    }

    fn counter(&mut self, counter: &Value, threads: Rows<'_>) {
        for key in ["name", "category", "description", "pid"] {
            self.holds(counter[key].is_string(), || format!("counter.{key}"));
        }
        let thread = counter["mainThreadIndex"].as_u64().and_then(|index| threads.get(index as usize));
        let is_its_own = thread.is_some_and(|thread| thread["pid"] == counter["pid"]);
        self.holds(is_its_own, || format!("counter of thread {}", counter["mainThreadIndex"]));
        let (samples, length) = self.table(counter, "samples", &["time", "count"]);
        self.is_sorted("counter.time", rows(&samples["time"]));
        self.holds(rows(&samples["count"]).iter().all(Value::is_number), || "counter.count".to_owned());
        // Tracks of power with fewer are not shown.
        self.holds(length > 2, || format!("a counter with {length} samples"));
    }
}

/// The elements of an array; none of anything else.
pub fn rows(value: &Value) -> Rows<'_> {
    value.as_array().map_or(&[], Vec::as_slice)
}
