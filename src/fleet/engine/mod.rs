//! Engines, that answer SQL.

mod clickhouse;
mod embedded;
mod folder;
mod sail;
mod version;

use self::clickhouse::ClickHouse;
use self::embedded::Embedded;
pub use self::embedded::check_files;
use self::sail::Sail;
use crate::args::Reached;
use crate::does_not_add_up::{DoesNotAddUp, WindowsRemoved};
use crate::place::Place;
use crate::rows::Columns;

/// The engine of a place.
pub enum Engine {
    /// In this process.
    Embedded(Box<Embedded>),
    /// A server of ClickHouse.
    ClickHouse(ClickHouse),
    /// A server of Sail.
    Sail(Sail),
}

impl Engine {
    /// Reaches a place, and looks whether eprof's tables are there.
    ///
    /// # Errors
    /// A place that cannot be reached, or has no such tables or those of another version.
    pub async fn open(place: &Place, reached: &Reached) -> anyhow::Result<Self> {
        Ok(match place {
            Place::Folder(folder) => Self::Embedded(Box::new(Embedded::open(folder, reached.memory).await?)),
            Place::ClickHouse(target) => Self::ClickHouse(ClickHouse::open(target.clone(), reached)?),
            Place::Sail(lake) => Self::Sail(Sail::open(lake).await?),
        })
    }

    /// Asks a question.
    ///
    /// # Errors
    /// What the engine says against it.
    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        let answer = match self {
            Self::Embedded(engine) => engine.ask(sql).await,
            Self::ClickHouse(server) => server.ask(sql),
            Self::Sail(server) => server.ask(sql).await,
        };
        // What is asked is pages of SQL.
        answer.map_err(|error| match error.is::<WindowsRemoved>() || error.is::<DoesNotAddUp>() {
            true => error,
            false => error.context("the tables give no answer (--sql prints what is asked)"),
        })
    }
}
