"""A record class of the package behaves as one of the standard library's."""

import copy
import dataclasses
import inspect
import math
import pickle
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from pathlib import Path

import numpy as np
import pytest

import rlvitals
from rlvitals.startup import fast_dataclass

SOURCE = Path(rlvitals.__file__).parent
MAKERS = (dataclasses.dataclass, fast_dataclass.dataclass)


def point(make, **options):
    @make(slots=True, **options)
    class Point:
        x: float
        names: list = field(default_factory=list)
        y: float = 2.0
        hidden: int = field(default=0, repr=False, compare=False)
        twice: float = field(init=False, default=0.0)

        def double(self):
            return 2 * self.x

    return Point


@fast_dataclass.dataclass(frozen=True, slots=True)
class Place:
    """At module level, as `pickle` needs it."""

    row: int
    column: int = 0


@fast_dataclass.dataclass(frozen=True, slots=True)
class Deep(Place):
    depth: int = 1


OPTIONS = ({}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}, {"kw_only": True})


@pytest.mark.parametrize("options", [*OPTIONS, {"weakref_slot": True}, {"repr": False}], ids=str)
def test_a_record_is_what_the_standard_library_makes(options):
    theirs, ours = (point(make, **options) for make in MAKERS)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__init__.__annotations__ == theirs.__init__.__annotations__
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
    mine, other = ours(x=1.0), theirs(x=1.0)
    assert asdict(mine) == asdict(other)
    assert asdict(replace(mine, y=5.0, hidden=7)) == asdict(replace(other, y=5.0, hidden=7))
    assert mine.names is not ours(x=1.0).names
    assert (mine == ours(x=1.0, hidden=3)) == (other == theirs(x=1.0, hidden=3))
    assert mine != other
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert mine.double() == 2.0
    if options.get("repr", True):
        assert repr(mine) == repr(other)


@pytest.mark.parametrize("make", MAKERS)
def test_wrong_arguments_are_refused_by_name(make):
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required .* 'x'"):
        point(make)()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point(make)(1.0, z=3)


def test_a_frozen_record_is_left_as_it_is():
    place = Place(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'row'"):
        place.row = 2
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        place.other = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'row'"):
        del place.row
    assert hash(place) == hash(Place(1)) == hash((1, 0))
    assert place == Place(1) != Place(2)
    assert place != Deep(1)
    assert Deep(1, depth=3) == Deep(1, 0, 3)


@pytest.mark.parametrize("place", [Place(1, 2), Deep(1, 2, 3)])
def test_a_frozen_record_is_pickled_and_copied(place):
    assert pickle.loads(pickle.dumps(place)) == place  # noqa: S301 - of our own
    assert copy.deepcopy(place) == copy.copy(place) == place


def test_a_value_equals_itself_also_where_it_is_no_number():
    """As in a tuple: what is the same object is equal, of one field as of several."""

    @fast_dataclass.dataclass(frozen=True, slots=True)
    class Value:
        value: object

    @fast_dataclass.dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    assert Value(math.nan) == Value(math.nan)
    array = np.arange(2)
    assert Value(array) == Value(array)
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    assert repr(Nothing()).endswith("Nothing()")


def test_what_a_class_defines_itself_stays():
    @fast_dataclass.dataclass(slots=True)
    class Name:
        text: str
        length: int = field(init=False)

        def __post_init__(self):
            self.length = len(self.text)

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    assert (repr(Name("abc")), Name("abc").length, hash(Name(""))) == ("own", 3, 1)
    assert Name("a") == Name("b")


def test_a_record_that_holds_itself_is_described():
    point_class = point(fast_dataclass.dataclass)
    loop = point_class(1.0)
    loop.names.append(loop)
    assert repr(loop).count("...") == 1


def test_every_module_that_a_command_loads_makes_its_records_with_it():
    """`trainers` and `faults` see the public face alone."""
    own = {SOURCE / "startup" / "fast_dataclass.py"} | {
        path for area in ("trainers", "faults") for path in (SOURCE / area).rglob("*.py")
    }
    theirs = re.compile(
        r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass", re.MULTILINE
    )
    assert not [p for p in SOURCE.rglob("*.py") if p not in own and theirs.search(p.read_text())]


def test_a_record_s_module_loads_nothing_for_a_signature():
    """Without a docstring the standard library's asks `inspect`, at 0.1 ms a class."""
    code = """
import inspect, sys
def fail(*_): raise AssertionError
inspect.signature = fail
from rlvitals.startup.fast_dataclass import dataclass
@dataclass(slots=True)
class Bare:
    x: int
print(Bare.__doc__)"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "Bare\n"
