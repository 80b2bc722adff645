"""Answers ClickHouse's HTTP by chdb, ClickHouse in this process: chdb_server.py TABLES PORT FOLDER

TABLES is a folder of `eprof export --format parquet`, whose rows are put into the database `energy` as `eprof push` would.
"""

import http.server
import sys
import urllib.parse

from chdb.session import Session

tables, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
session = Session(f"{folder}/data")
session.query("CREATE DATABASE energy")
session.query("USE energy")
for table, push in (("functions", ""), ("stack_frames", ""), ("samples", ", 7::Int64 AS push"), ("balance", ", 7::Int64 AS push")):
    # Times are whole numbers of microseconds in tables of `eprof push`.
    times = {"samples": ("time",), "balance": ("window_start", "window_end")}.get(table, ())
    replaced = ", ".join(f"toInt64(toUnixTimestamp64Micro({name})) AS {name}" for name in times)
    columns = f"* REPLACE ({replaced})" if times else "*"
    session.query(f"""CREATE TABLE {table} ENGINE = MergeTree ORDER BY tuple() SETTINGS allow_nullable_key = 1 AS
        SELECT {columns}{push} FROM file('{tables}/{table}/*.parquet') SETTINGS schema_inference_make_columns_nullable = 0""")
session.query("""CREATE TABLE pushes ENGINE = ReplacingMergeTree ORDER BY (recording, push) AS
    SELECT recording, push, 1::Int32 AS version, any(node) AS node, any(time) AS time, toInt64(count()) AS samples, 1::Int64 AS balance
    FROM samples GROUP BY recording, push""")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = self.headers.get("Content-Length")
        if length is None:
            statement = b""
            while size := int(self.rfile.readline(), 16):
                statement += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            statement = self.rfile.read(int(length))
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        form = given.pop("default_format", "TabSeparated")
        given.pop("database", None)
        # An answer is sent when it is there, and a session that may not write cannot be let write again.
        given.pop("wait_end_of_query", None)
        given.pop("readonly", None)
        try:
            for name, value in given.items():
                session.query(f"SET {name} = '{value}'")
            status, answer = 200, session.query(statement.decode(), form).bytes()
        except Exception as error:
            status, answer = 500, str(error).encode()
        self.send_response(status)
        # ClickHouse has it in every answer, and eprof believes no answer without.
        self.send_header("X-ClickHouse-Server-Display-Name", "chdb")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
