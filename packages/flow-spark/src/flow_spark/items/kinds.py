"""Kinds of Arrow's types. Each kind has several types with the same values."""

from __future__ import annotations

from flow_spark.items.arrow import ArrowField, ArrowType, pa

__all__ = [
    "inner_fields",
    "is_binary",
    "is_listed",
    "is_text",
    "is_zoned",
    "loosened",
    "with_inner",
]


def is_text(kind: ArrowType) -> bool:
    """Return whether values of `kind` are text."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_binary(kind: ArrowType) -> bool:
    """Return whether values of `kind` are bytes."""
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_listed(kind: ArrowType) -> bool:
    """Return whether values of `kind` are lists."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def is_zoned(kind: ArrowType) -> bool:
    """Return whether values of `kind` are points in time, like a Spark ``timestamp``."""
    return pa.types.is_timestamp(kind) and kind.tz is not None


def inner_fields(kind: ArrowType) -> list[ArrowField]:
    """Return the fields of a nested type; none for any other type."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    return [kind.value_field] if is_listed(kind) else []


def with_inner(kind: ArrowType, inner: list[ArrowField]) -> ArrowType:
    """Return `kind` with other fields in it; all kinds of lists become plain ones."""
    if pa.types.is_map(kind):
        return pa.map_(inner[0], inner[1])
    if pa.types.is_struct(kind):
        return pa.struct(inner)
    return pa.list_(inner[0]) if inner else kind


def loosened(field: ArrowField, *, missing: bool = False) -> ArrowField:
    """Return `field` with nulls allowed where Spark has nulls: in fields of a missing struct.

    Args:
        field: the field, from Spark.
        missing: whether the struct around it may be missing.
    """
    nullable, kind = field.nullable or missing, field.type
    inner = inner_fields(kind)
    if pa.types.is_map(kind):
        inner = [inner[0], loosened(inner[1])]
    else:
        inner = [loosened(part, missing=nullable and pa.types.is_struct(kind)) for part in inner]
    return (field.with_type(with_inner(kind, inner)) if inner else field).with_nullable(nullable)
