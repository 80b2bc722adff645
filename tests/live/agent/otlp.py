"""Decodes requests of `eprof agent --otlp` by OpenTelemetry's own definitions and prints what each says as JSON."""

import json
import sys

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest


def said(path):
    with open(path, "rb") as file:
        request = ExportProfilesServiceRequest.FromString(file.read())
    [resource] = request.resource_profiles
    values = {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in resource.resource.attributes}
    text = request.dictionary.string_table
    [energy] = [
        profile
        for scope in resource.scope_profiles
        for profile in scope.profiles
        if text[profile.sample_type.type_strindex] == "energy"
    ]
    assert text[energy.sample_type.unit_strindex] == "nanojoules"
    return {
        "attributes": values,
        "id": energy.profile_id.hex(),
        "time_unix_nano": energy.time_unix_nano,
        "nanojoules": sum(value for sample in energy.samples for value in sample.values),
    }


print(json.dumps([said(path) for path in sys.argv[1:]]))
