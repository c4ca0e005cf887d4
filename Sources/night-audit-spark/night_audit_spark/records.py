"""Rows of a lake as PostgreSQL's `record_send` encodes them, byte by byte."""

import struct

from pyspark.sql import functions, types

# Type OIDs of PostgreSQL's catalogue.
_BOOLEAN, _BIGINT, _TEXT, _TIMESTAMP, _NUMERIC = 16, 20, 25, 1184, 1700
# Microseconds from 1970 to 2000, the epoch of PostgreSQL.
_EPOCH = 946_684_800_000_000
_DECIMALS_OF_MONEY = 6


def refusal(table, column):
    """Why a column cannot be read as the plan wants it; None where it can."""
    name, reading = column["name"], column["reading"]
    if reading == "always":
        return None
    if name not in table.columns:
        return f"has no column {name}; the page Views lists all required columns"
    kind = table.schema[name].dataType
    if reading in ("text", "presentText") and isinstance(kind, types.FractionalType):
        return (f"column {name} is of type {kind.simpleString()}, but must be text, because 17 would be read as 17.0; write "
                f"it with CAST(CAST({name} AS DECIMAL(38, 0)) AS STRING) AS {name}, and write long IDs again from their source")
    return None


def selected(table, column):
    """The column of a table in the type that the plan wants; what cannot be read so is missing."""
    name, reading = column["name"], column["reading"]
    if reading == "always":
        return functions.lit(True).alias(name)
    field = table[name]
    if reading == "absence":
        return field.isNull().alias(name)
    if reading == "timestamptz":
        return functions.unix_micros(field.cast("timestamp")).alias(name)
    if reading == "bigint":
        return field.cast("bigint").alias(name)
    if reading == "numeric" and not isinstance(table.schema[name].dataType, types.DecimalType):
        return field.cast("decimal(38,18)").alias(name)
    if reading == "numeric":
        return field
    text = field.cast("string")
    return (functions.when(text != "", text) if reading == "presentText" else text).alias(name)


class Encoder:
    """Encodes the values of some columns."""

    def __init__(self, columns):
        self._readings = [column["reading"] for column in columns]

    def __call__(self, values):
        parts = [struct.pack(">i", len(self._readings))]
        for reading, value in zip(self._readings, values):
            number, send = _READINGS[reading]
            if value is None:
                parts.append(struct.pack(">Ii", number, -1))
            else:
                content = send(value)
                parts += [struct.pack(">Ii", number, len(content)), content]
        return b"".join(parts)


def numeric(value):
    """A decimal as `numeric_send` sends it: digits to the base of 10,000, and how many decimals are shown."""
    sign = 0x4000 if value < 0 else 0
    whole, _, fraction = format(abs(value), "f").partition(".")
    # Trailing zeros come from types such as decimal(38,18) and are not wanted.
    if len(fraction) > _DECIMALS_OF_MONEY:
        fraction = fraction.rstrip("0")
    scale = len(fraction)
    whole, fraction = whole.zfill(-(-len(whole) // 4) * 4), fraction.ljust(-(-scale // 4) * 4, "0")
    digits = [int((whole + fraction)[place:place + 4]) for place in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        del digits[0]
        weight -= 1
    while digits and digits[-1] == 0:
        del digits[-1]
    if not digits:
        sign = weight = 0
    return struct.pack(f">hhHH{len(digits)}h", len(digits), weight, sign, scale, *digits)


_READINGS = {
    "text": (_TEXT, str.encode),
    "presentText": (_TEXT, str.encode),
    "bigint": (_BIGINT, struct.Struct(">q").pack),
    "numeric": (_NUMERIC, numeric),
    "timestamptz": (_TIMESTAMP, lambda microseconds: struct.pack(">q", microseconds - _EPOCH)),
    "absence": (_BOOLEAN, struct.Struct(">?").pack),
    "always": (_BOOLEAN, struct.Struct(">?").pack),
}
