"""Bodies as JSON: read once, strictly, straight into their types; refused with the field that is wrong.

Numbers that JSON does not have (`NaN`, `1e999`), unknown fields, texts for numbers and anything but
`application/json` are refused. The framework's own way would read twice, and take `"1"` for 1.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Generic, TypeVar

import msgspec
from litestar.dto import AbstractDTO, DTOFieldDefinition
from litestar.typing import FieldDefinition

from recrawl.service.errors import ApiError, pointed

T = TypeVar("T")
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}  # one for each type of body


class JsonBody(AbstractDTO[T], Generic[T]):
    """The body of a request as a value of a type: `dto=JsonBody[Signals]` beside `data: Signals`."""

    def decode_bytes(self, value: bytes) -> Any:
        """Read a body."""
        kind, _ = self.asgi_connection.headers.get("content-type", "application/json").partition(";")[::2]
        if kind.strip().lower() != "application/json":
            raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")
        return decoded(value, self.model_type)

    def decode_builtins(self, value: dict[str, Any]) -> Any:  # noqa: ARG002 - the interface has it
        """Forms and the like are not read."""
        raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")

    @classmethod
    def create_for_field_definition(cls, *_: Any, **__: Any) -> None:
        """Nothing is to be made ready."""

    @classmethod
    def create_openapi_schema(cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any) -> Any:  # noqa: ARG003
        """The type as it is."""
        return schema_creator.for_field_definition(field_definition)

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Generator[DTOFieldDefinition, None, None]:  # noqa: ARG003
        """None: the type is read as it is."""
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:  # noqa: ARG003
        """None: the type is read as it is."""
        return False


def decoded(body: bytes, kind: type[T]) -> T:
    """A body as a value of a type."""
    try:
        decoder = _DECODERS.get(kind) or _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))
        value: T = decoder.decode(body)
    except msgspec.ValidationError as error:
        said, field, row = pointed(str(error))
        raise ApiError(422, said, field, row) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise ApiError(422, "the body is nested too deeply") from None
    return value
