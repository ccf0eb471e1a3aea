"""From a user's columns to those of a bucket and back, with checks that name the column."""

from typing import Any

from pyspark.sql import Column, DataFrame, functions, types

from driftgp.spark.job import Job

# What a bucket answers, and what a backfill and a state store keep of it.
ADDED = ("mean", "low", "high", "flags")
ANSWERS = "key string, time long, y double, mean double, low double, high double, flags string"
STATES = "job string, fleet binary"

_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def checked(frame: DataFrame, job: Job) -> Job:
    """The job on this DataFrame, with its inputs and its zone; refuses one that lacks a column or has another type."""
    kinds = {name: kind.dataType for name, kind in zip(frame.columns, frame.schema.fields, strict=True)}
    asked, base = job.known, job.settings.base
    parts = [
        ("key", job.key),
        ("time", job.time),
        *(("base" if name == base else "features", name) for name in asked),
        ("target", job.target),
    ]
    for part, name in parts:
        if frame.columns.count(name) != 1:
            count = "no" if name not in kinds else "more than one"
            raise ValueError(f"{part}: the DataFrame has {count} column {name!r}; it has {', '.join(frame.columns)}")
        needed, allowed = _NEEDED[part]
        if not isinstance(kinds[name], allowed):
            raise ValueError(
                f"{part}: column {name!r} must hold {needed}; it is {kinds[name].simpleString()}: cast it first"
            )
    taken = [name for name in (job.key, job.time, job.target) if name in ADDED]
    if taken:
        raise ValueError(
            f"column {taken[0]!r} has the name of a column to be added ({', '.join(ADDED)}): rename it first"
        )
    used = {job.key, job.time, job.target, *asked}
    late = [name for name in kinds if name not in used and isinstance(kinds[name], _NEEDED["features"][1])]
    kind = kinds[job.time]
    zone = None
    if isinstance(kind, types.TimestampNTZType):
        zone = ""
    elif isinstance(kind, types.TimestampType):
        zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    return job.changed(inputs=(*asked, *(late if job.settings.others == "late" else ())), zone=zone)


_STAMPS = (types.TimestampType, types.TimestampNTZType)
_NEEDED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "key": ("strings or whole numbers", (types.StringType, *_WHOLE)),
    "time": ("timestamps or whole numbers", (*_STAMPS, *_WHOLE)),
    "features": ("numbers, booleans or strings", (types.NumericType, types.BooleanType, types.StringType)),
    "base": ("numbers", (types.NumericType,)),
    "target": ("numbers", (types.NumericType, types.BooleanType)),
}


def prepared(frame: DataFrame, job: Job) -> DataFrame:
    """The columns of a bucket: `bucket`, `key`, `time`, `y`, `x0`, …; a null key or time fails, with its column."""
    key = _never_null(
        column(job.key).cast("string"), f"key: column {job.key!r} has a null; leave such rows out, or name them"
    )
    time = _never_null(_number(frame, job.time), f"time: column {job.time!r} has a null; leave such rows out")
    return frame.select(
        functions.pmod(functions.xxhash64(key), functions.lit(job.buckets)).cast("int").alias("bucket"),
        key.alias("key"),
        time.alias("time"),
        column(job.target).cast("double").alias("y"),
        *(_input(frame, name).alias(f"x{i}") for i, name in enumerate(job.inputs or ())),
    )


def finished(answers: DataFrame, job: Job, frame: DataFrame) -> DataFrame:
    """A bucket's answers, in the names and types of the user's DataFrame."""
    kind = frame.schema[job.key].dataType
    columns = [
        functions.col("key").cast(kind).alias(job.key),
        _moment(frame, job.time),
        functions.col("y").alias(job.target),
    ]
    return answers.select(*columns, *ADDED)


def column(name: str) -> Column:
    """A column by its exact name, dots and spaces included."""
    return functions.col("`" + name.replace("`", "``") + "`")


def _never_null(value: Column, message: str) -> Column:
    return functions.coalesce(value, functions.raise_error(functions.lit(message)))


def _input(frame: DataFrame, name: str) -> Column:
    """A string as it is, anything else as a number."""
    value = column(name)
    return value if isinstance(frame.schema[name].dataType, types.StringType) else value.cast("double")


def _number(frame: DataFrame, name: str) -> Column:
    """A time as a whole number: microseconds of a timestamp."""
    kind, value = frame.schema[name].dataType, column(name)
    if isinstance(kind, types.TimestampType):
        return functions.unix_micros(value)
    if isinstance(kind, types.TimestampNTZType):
        return functions.timestamp_diff("MICROSECOND", functions.expr(_EPOCH), value)
    return value.cast("long")


def _moment(frame: DataFrame, name: str) -> Column:
    """The reverse of `_number`."""
    kind, value = frame.schema[name].dataType, functions.col("time")
    if isinstance(kind, types.TimestampType):
        moment = functions.timestamp_micros(value)
    elif isinstance(kind, types.TimestampNTZType):
        moment = functions.expr(f"{_EPOCH} + make_dt_interval(0, 0, 0, CAST(time AS DECIMAL(20, 0)) / 1000000)")
    else:
        moment = value.cast(kind)
    return moment.alias(name)
