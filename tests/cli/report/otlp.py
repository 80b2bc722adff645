"""Sends a file of `eprof export --format otlp` to a server on this machine as a collector's client would, decodes there what
arrives by OpenTelemetry's own definitions, and prints what it says as JSON."""

import json
import sys
import threading
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
    ExportProfilesServiceResponse,
)

PATH = "/v1development/profiles"
arrived = []


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = self.path == PATH and self.headers["Content-Type"] == "application/x-protobuf"
        if good:
            arrived.append(ExportProfilesServiceRequest.FromString(body))
        answer = ExportProfilesServiceResponse().SerializeToString()
        self.send_response(200 if good else 400)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def send(body):
    server = HTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.handle_request)
    server.timeout = 30
    serving.start()
    url = f"http://127.0.0.1:{server.server_port}{PATH}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-protobuf"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
        assert response.status == 200, response.status
    serving.join()
    server.server_close()
    return arrived[0]


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


def said(request):
    words = request.dictionary
    text = words.string_table
    # A reader that knows fewer fields would drop them and write less.
    assert len(request.SerializeToString()) > 0
    for table in (words.mapping_table, words.location_table, words.function_table, words.link_table,
                  words.attribute_table, words.stack_table):
        assert not table[0].SerializeToString(), "the first entry of each table stands for nothing"
    recordings = []
    for resource in request.resource_profiles:
        attributes = {pair.key: value_of(pair.value) for pair in resource.resource.attributes}
        profiles = {}
        for scope in resource.scope_profiles:
            assert scope.scope.name == "eprof" and scope.scope.version
            for profile in scope.profiles:
                functions, threads = defaultdict(int), defaultdict(int)
                for sample in profile.samples:
                    [value] = sample.values
                    location = words.location_table[words.stack_table[sample.stack_index].location_indices[0]]
                    function = words.function_table[location.lines[0].function_index] if location.lines else None
                    functions[text[function.name_strindex] if function else "?"] += value
                    of_sample = [words.attribute_table[index] for index in sample.attribute_indices]
                    named = {text[pair.key_strindex]: value_of(pair.value) for pair in of_sample}
                    threads[named["thread.name"]] += value
                profiles[text[profile.sample_type.type_strindex]] = {
                    "unit": text[profile.sample_type.unit_strindex],
                    "start": profile.time_unix_nano,
                    "nanoseconds": profile.duration_nano,
                    "functions": functions,
                    "threads": threads,
                }
        recordings.append({"attributes": attributes, "profiles": profiles})
    return recordings


with open(sys.argv[1], "rb") as file:
    json.dump(said(send(file.read())), sys.stdout)
