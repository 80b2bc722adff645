//! Sail, by Arrow Flight SQL, over the files of a lake.
//!
//! Sail speaks Spark's protocol, too. Flight SQL asks the same engine and answers with Arrow's own columns, by a client that is a
//! part of Arrow. Its server knows neither users nor TLS: it belongs on a network of its own, or behind a tunnel.

use std::time::Duration;

use anyhow::{Context, ensure};
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use tonic::transport::{Channel, Endpoint};

use crate::place::Lake;
use crate::rows::Columns;

/// From the look-up of the host's name to the first answer.
const TO_CONNECT: Duration = Duration::from_secs(10);
/// No message of an answer is larger: an engine sends some thousand rows at once.
const MOST_BYTES: usize = 256 << 20;

/// A server.
pub struct Sail {
    client: FlightSqlServiceClient<Channel>,
    server: String,
}

impl Sail {
    /// Reaches a server. Whether tables are there is known when they are asked.
    ///
    /// # Errors
    /// A server that is away.
    pub async fn open(lake: &Lake) -> anyhow::Result<Self> {
        let server = lake.server.clone();
        let endpoint = Endpoint::from_shared(format!("http://{server}"))?.connect_timeout(TO_CONNECT);
        let channel = endpoint.connect().await.with_context(|| {
            format!(
                "no server of Flight SQL at {server}: start one by `sail flight server --ip HOST --port PORT`"
            )
        })?;
        let client = FlightServiceClient::new(channel).max_decoding_message_size(MOST_BYTES);
        Ok(Self { client: FlightSqlServiceClient::new_from_inner(client), server })
    }

    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        let mut client = self.client.clone();
        let info = client.execute(sql.to_owned(), None).await?;
        let mut batches = Vec::new();
        for endpoint in info.endpoint {
            // Where rows lie elsewhere, that place would have to be believed: Sail's server hands them out itself.
            let server = &self.server;
            ensure!(
                endpoint.location.is_empty(),
                "{server} sends its answer from another place, which is not asked"
            );
            let ticket =
                endpoint.ticket.with_context(|| format!("{server} tells of rows without a ticket"))?;
            let rows = client.do_get(ticket).await?;
            batches.extend(rows.try_collect::<Vec<_>>().await?);
        }
        Columns::of(&batches)
    }
}
