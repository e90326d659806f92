"""Every message of the API is encoded and decoded whole, whatever it consists of."""

from collections.abc import Iterator, Mapping

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument
from kagzi.core.records import ENCODING
from kagzi.sdk.transport.payload_codec import CLEAR, MessageCodec, Undecodable, refuse_encoded
from kagzi.v1 import (
    admin_pb2,
    common_pb2,
    namespace_pb2,
    worker_pb2,
    workflow_pb2,
    workflow_schedule_pb2,
)

FILES = (admin_pb2, namespace_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2)
SECRET = "platypus"
PAYLOAD, ERROR = "kagzi.v1.Payload", "kagzi.v1.ErrorDetail"


class Flipped:
    """Every bit."""

    def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
        return bytes(each ^ 0xFF for each in data), {"encoding": "flipped", "encoding-key": "a b=c]"}

    def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        assert metadata == {"encoding": "flipped", "encoding-key": "a b=c]"}
        return bytes(each ^ 0xFF for each in data)


CODEC = MessageCodec(Flipped())


def messages_of(file: FileDescriptor) -> Iterator[Descriptor]:
    for service in file.services_by_name.values():
        for method in service.methods:
            yield from (method.input_type, method.output_type)


MESSAGES = {each.full_name: each for module in FILES for each in messages_of(module.DESCRIPTOR)}


def fill(message: Message, depth: int = 6) -> int:
    """Let user code say SECRET in every place of the message. Returns in how many."""
    name = message.DESCRIPTOR.full_name
    if name == PAYLOAD:
        message.data = SECRET.encode()  # type: ignore[attr-defined]
        return 1
    if name == "kagzi.v1.SetStatusOperation":
        message.text = SECRET  # type: ignore[attr-defined]
        return 1
    if name == ERROR:
        message.message = message.traceback = SECRET  # type: ignore[attr-defined]
        message.metadata["details"] = SECRET  # type: ignore[attr-defined]
    inside = (fill_field(message, field, depth - 1) for field in message.DESCRIPTOR.fields if depth)
    return int(name == ERROR) + sum(inside)


def fill_field(message: Message, field: FieldDescriptor, depth: int) -> int:
    kind = field.message_type
    is_choice = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
    if kind is None or kind.full_name.startswith("google.") or is_choice:
        return 0
    if kind.GetOptions().map_entry:
        is_message = kind.fields_by_name["value"].type == FieldDescriptor.TYPE_MESSAGE
        return fill(getattr(message, field.name)["key"], depth) if is_message else 0
    if field.is_repeated:
        return fill(getattr(message, field.name).add(), depth)
    inner = GetMessageClass(kind)()
    count = fill(inner, depth)
    if count:
        getattr(message, field.name).CopyFrom(inner)
    return count


def variants(descriptor: Descriptor) -> Iterator[Message]:
    """Filled: one for each kind of operation, if it has operations; and one without."""
    yield GetMessageClass(descriptor)()
    if descriptor.full_name == "kagzi.v1.SessionRequest":
        for field in worker_pb2.Operation.DESCRIPTOR.fields:
            if field.containing_oneof is not None and field.type == FieldDescriptor.TYPE_MESSAGE:
                request = worker_pb2.SessionRequest()
                fill(getattr(request.runs.add().operations.add(), field.name))
                yield request


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_nothing_is_left_in_clear_and_all_of_it_comes_back(name: str) -> None:
    for message in variants(MESSAGES[name]):
        fill(message)
        before = message.SerializeToString(deterministic=True)
        CODEC.encode(message)
        encoded = message.SerializeToString(deterministic=True)
        assert SECRET.encode() not in encoded
        CODEC.encode(message)  # as when a call is repeated
        assert message.SerializeToString(deterministic=True) == encoded
        received = CODEC.decoding(type(message).FromString)(encoded)
        assert received.SerializeToString(deterministic=True) == before


def test_the_messages_above_have_something_to_say() -> None:
    filled = {name: sum(fill(each) for each in variants(each)) for name, each in MESSAGES.items()}
    for name in ("StartBatchRequest", "SignalWorkflowRequest", "ForkWorkflowRequest", "CreateWorkflowScheduleRequest"):
        assert filled[f"kagzi.v1.{name}"] >= 1, name
    assert sum(1 for _ in variants(MESSAGES["kagzi.v1.SessionRequest"])) > 10


def test_a_text_is_found_inside_of_another() -> None:
    error = common_pb2.ErrorDetail(message=SECRET)
    CODEC.encode(error)
    response = workflow_pb2.ExplainWorkflowResponse(sentence=f"step 'a' failed: {error.message}. It is retried.")
    CODEC.decode(response)
    assert response.sentence == f"step 'a' failed: {SECRET}. It is retried."


def everywhere(message: Message, text: str, depth: int = 6) -> None:
    """Somebody who has no key writes `text` wherever a message has a text."""
    for field in message.DESCRIPTOR.fields if depth else ():
        if field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append(text)
            elif field.containing_oneof is None:
                setattr(message, field.name, text)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING:
                getattr(message, field.name)["key"] = text
        elif field.message_type is not None and field.containing_oneof is None:
            inner = GetMessageClass(field.message_type)()
            everywhere(inner, text, depth - 1)
            if field.is_repeated:
                getattr(message, field.name).append(inner)
            else:
                getattr(message, field.name).CopyFrom(inner)


# What workers encode, and what servers compose of errors for people. Everything else is written by anybody.
ENCODED_TEXTS = {
    "SetStatusOperation.text",
    "Workflow.status_text",
    "WatchResponse.status_text",
    "ErrorDetail.message",
    "ErrorDetail.traceback",
    "ErrorDetail.metadata",
    "TimelineStep.error",
    "ExplainWorkflowResponse.sentence",
    "ExplainWorkflowResponse.reason",
    "ExplainWorkflowResponse.facts",
    "ExplainWorkflowResponse.remedy",
    "BulkOperation.last_error",
}


def decoded_texts(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        name = f"{message.DESCRIPTOR.name}.{field.name}"
        if field.type == FieldDescriptor.TYPE_STRING:
            if SECRET in (value if isinstance(value, str) else "".join(value)):
                yield name
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            for each in value.values():
                if isinstance(each, Message):
                    yield from decoded_texts(each)
                elif isinstance(each, str) and SECRET in each:
                    yield name
        elif field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                yield from decoded_texts(each)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_ciphertext_in_a_name_a_label_or_a_reason_stays_as_it_is(name: str) -> None:
    error = common_pb2.ErrorDetail(message=SECRET)
    CODEC.encode(error)
    message = GetMessageClass(MESSAGES[name])()
    everywhere(message, error.message)
    received = CODEC.decoding(type(message).FromString)(message.SerializeToString())
    assert set(decoded_texts(received)) <= ENCODED_TEXTS


def test_a_status_text_is_decoded_as_a_whole_or_not_at_all() -> None:
    status = worker_pb2.SetStatusOperation(text=SECRET)
    CODEC.encode(status)
    part, whole = f"stolen: {status.text}", status.text
    for text, shown in ((part, part), (whole, SECRET)):
        received = workflow_pb2.WatchResponse(status_text=text)
        CODEC.decode(received)
        assert received.status_text == shown


def test_long_texts_are_shortened_so_that_the_server_need_not() -> None:
    long = "ä" * limits.ERROR_TRACEBACK_BYTES
    error = common_pb2.ErrorDetail(message=long, traceback=f"{long}end")
    status = worker_pb2.SetStatusOperation(text="ä" * (limits.STATUS_TEXT_BYTES // 2))
    for message in (error, status):
        CODEC.encode(message)
    assert len(error.message) <= limits.ERROR_MESSAGE_BYTES
    assert len(error.traceback) <= limits.ERROR_TRACEBACK_BYTES
    assert len(status.text) <= limits.STATUS_TEXT_BYTES
    for message in (error, status):
        CODEC.decode(message)
    assert error.message.endswith("ä…")
    assert error.traceback.startswith("…ä")
    assert error.traceback.endswith("ääend")
    assert len(status.text.encode()) > 600


def test_what_is_kagzis_own_stays_readable() -> None:
    error = common_pb2.ErrorDetail(message="no key", metadata={ENCODING: CLEAR})
    retried = common_pb2.ErrorDetail(message=SECRET, type="app.Refused", metadata={"code": "E7"})
    for message in (error, retried):
        CODEC.encode(message)
    assert error.message == "no key"
    assert (retried.type, dict(retried.metadata)) == ("app.Refused", {"code": "E7"})


def test_without_a_codec_what_is_encoded_is_shown_as_what_it_is() -> None:
    payload, error = common_pb2.Payload(data=b"1"), common_pb2.ErrorDetail(message=SECRET)
    for message in (payload, error):
        CODEC.encode(message)
        MessageCodec(None).decode(message)
    assert payload.metadata["encoding"] == "flipped"
    assert error.message == "[encoded: flipped, a b=c], 8 bytes]"
    with pytest.raises(Undecodable, match="it is encoded as 'flipped', and there is no codec here"):
        refuse_encoded(payload.metadata, "the input")


def test_a_codec_must_say_how_it_encodes() -> None:
    class Silent(Flipped):
        def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
            return data, {"key": "x"}

    with pytest.raises(InvalidArgument, match="must name its encoding under 'encoding'"):
        MessageCodec(Silent()).encode(common_pb2.Payload(data=b"1"))


@pytest.mark.parametrize("encoding", ["", "json", "json/plain"])
def test_a_payload_that_says_it_is_json_is_read_as_json_and_encoded_on_its_way_out(encoding: str) -> None:
    """Clients of other languages may say so."""
    refuse_encoded({ENCODING: encoding, "content-type": "application/json"}, "input")
    payload = common_pb2.Payload(data=b"1", metadata={ENCODING: encoding})
    request = workflow_pb2.StartWorkflowRequest(input=payload)
    CODEC.decode(request)
    assert request.input.data == b"1"
    CODEC.encode(request)
    assert request.input.data != b"1"
    assert request.input.metadata[ENCODING] == "flipped"
