//! The process or thread that rows are cut down to.

use std::fmt;

use eprof::label::Label;
use eprof::live::RowKey;
use eprof::report::{Selection, TaskIds};

/// A process or thread, by its numbers: another one of the same name is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zoom {
    name: Label,
    task: TaskIds,
}

impl Zoom {
    /// Of a row; `None` of one that stands for neither a process nor a thread.
    pub fn of(row: &RowKey) -> Option<Self> {
        let (pid, tid) = row.ids;
        Some(Self { name: row.name.clone(), task: TaskIds { pid: pid?, tid } })
    }

    /// Its samples alone.
    pub fn selection(&self) -> Selection {
        Selection { task: Some(self.task), ..Selection::default() }
    }
}

impl fmt::Display for Zoom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, task: TaskIds { pid, tid } } = self;
        match tid {
            None => write!(out, "process {name} ({pid})"),
            Some(tid) => write!(out, "thread {name} ({pid}/{tid})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_process_or_one_thread() {
        let row = |ids| RowKey { name: Label::new("sh"), module: None, values: Vec::new(), ids };
        let zoom = |ids| Zoom::of(&row(ids)).map(|zoom| (zoom.to_string(), zoom.selection().task));
        let task = |tid| Some(TaskIds { pid: 7, tid });
        assert_eq!(zoom((Some(7), None)), Some(("process sh (7)".to_owned(), task(None))));
        assert_eq!(zoom((Some(7), Some(8))), Some(("thread sh (7/8)".to_owned(), task(Some(8)))));
        assert_eq!(zoom((None, None)), None);
    }
}
