"""What clients asked and were told, and the rules that a broker must not break.

Every scenario records into one History: each write with its session, when it was sent and when
and how it was answered; each poll with what it got; who owned which partition of a group; what a
group had committed; and, when all is over, each log from its beginning to its end. check() then
holds the whole of it against the rules of RULES. On one broker offsets are the order, so every
rule is linear in the history: no search is needed.

An operation that was not answered, or answered after the power began to go, is `unknown`: it may
or may not have happened, and both are right.
"""

import bisect
import hashlib
import math
import threading
import time
from typing import NamedTuple

RULES = {
    "lost": "an acknowledged record, or one that was shown, is read by nobody",
    "aborted-read": "a refused write is read, or a record that nobody wrote",
    "inconsistent-offset": "two values at one offset",
    "duplicate": "one value at two offsets",
    "non-monotonic": "a later send got a lower offset, or a poll went back",
    "skipped": "one session jumped over a record that exists",
    "unseen": "after all is quiet something written can't be consumed",
    "offset-reuse": "a consumer saw another record at an offset without being told of a truncation",
    "consume-queue": "a RocketMQ store contradicts itself",
    "group": "two owners of one partition in one generation, or a committed offset went back",
    "promise": "the broker broke a promise that the scenario watches itself",
}
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
WHOLE_BYTES = 48  # longer values are known by their beginning and their hash


def identity(value):
    if value is None:
        return b"\x00null"
    if len(value) <= WHOLE_BYTES:
        return bytes(value)
    return bytes(value[:16]) + hashlib.blake2b(value, digest_size=16).digest()


class Anomaly(NamedTuple):
    rule: str
    text: str

    def __str__(self):
        return f"{self.rule}: {self.text}"


class Write:
    """One record on its way. `may_lose_s`: a cut that comes within so many seconds of the
    acknowledgement may take it."""

    __slots__ = ("session", "place", "value", "end", "outcome", "offset", "idempotent", "retried",
                 "may_lose_s", "age")

    def __init__(self, session, place, value, idempotent, may_lose_s):
        self.session, self.place, self.value = session, place, value
        self.idempotent, self.may_lose_s = idempotent, may_lose_s
        self.outcome, self.offset, self.end, self.age = UNKNOWN, None, math.inf, 0
        self.retried = False

    def __str__(self):
        return f"{self.place[0]}-{self.place[1]} {self.value[:40]!r}"


class Sent:
    """The records of one request; tell it what became of them."""

    def __init__(self, history, writes):
        self.history, self.writes = history, writes

    def ok(self, base_offset=None):
        """Acknowledged. `base_offset` is None where the protocol does not say."""
        with self.history.lock:
            if not self.history.powered:
                return
            now = self.history.clock()
            for n, write in enumerate(self.writes):
                write.outcome, write.end, write.age = OK, now, len(self.history.cuts)
                write.offset = None if base_offset is None else base_offset + n

    def failed(self):
        """Refused for good: it must never be read."""
        for write in self.writes:
            write.outcome = FAILED

    def retried(self):
        """Sent again after an unknown outcome."""
        for write in self.writes:
            write.retried = True


class Session:
    """One client, used by one thread."""

    def __init__(self, history, name):
        self.history, self.name = history, name

    def write(self, place, values, idempotent=False, may_lose_s=0.0):
        writes = [Write(self, place, identity(value), idempotent, may_lose_s) for value in values]
        with self.history.lock:
            self.history.writes.extend(writes)
        return Sent(self.history, writes)

    def poll(self, place, position, records):
        """`records` are (offset, value) at or beyond `position`, which was asked for."""
        if records:
            self._event(place, ("poll", position, [(o, identity(v)) for o, v in records]))

    def seek(self, place):
        """The client itself goes elsewhere."""
        self._event(place, ("seek", None, None))

    def truncated(self, place, end):
        """The broker said that what was read from `end` on is gone."""
        self._event(place, ("truncated", end, None))

    def _event(self, place, event):
        with self.history.lock:
            if self.history.powered:
                events = self.history.polls.setdefault((self, place), [])
                events.append((len(self.history.cuts), *event))


class Final(NamedTuple):
    """A log when all is quiet: every offset with a record, from `start` to `end`."""

    start: int
    end: int
    values: dict


class History:
    """Thread-safe to record; check() when nobody records any more."""

    def __init__(self, clock=time.monotonic):
        self.clock, self.lock = clock, threading.Lock()
        self.writes, self.polls, self.finals, self.topics = [], {}, {}, set()
        self.cuts, self.powered = [], True
        self.lossy, self.excused = set(), {}
        self.owners, self.commits, self.noted = {}, {}, []
        self.figures = {"may lose, lost": 0, "oldest of them, s": 0.0}

    def session(self, name):
        return Session(self, name)

    def shows_early(self, place):
        """Readers of this place see records that a cut may take: flush is not `ack`."""
        self.lossy.add(place)

    def damaged(self, place, offsets):
        """These records lie in what was damaged on purpose: they may be missing, never wrong."""
        self.excused.setdefault(place, set()).update(offsets)

    def power(self, on):
        """Off before the power goes: what is answered from now on counts for nothing."""
        with self.lock:
            self.powered = on
            if not on:
                self.cuts.append(self.clock())

    def created(self, topic):
        with self.lock:
            if self.powered:
                self.topics.add(topic)

    def final(self, place, start, end, records):
        self.finals[place] = Final(start, end, {o: identity(v) for o, v in records})

    def owns(self, group, generation, member, partitions):
        with self.lock:
            owners = self.owners.setdefault((group, generation), {})
            for partition in partitions:
                owners.setdefault(partition, set()).add(member)

    def committed(self, group, place, offset):
        """What the broker says a group has committed, in the order of the answers."""
        with self.lock:
            self.commits.setdefault((group, place), []).append(offset)

    def reset(self, group, place):
        with self.lock:
            self.commits.setdefault((group, place), []).append(None)

    def note(self, rule, text):
        """Something a scenario saw by itself."""
        with self.lock:
            self.noted.append(Anomaly(rule, text))

    def size(self):
        """How many operations are in it."""
        polled = sum(len(e[3] or ()) for events in self.polls.values() for e in events)
        return (len(self.writes) + polled + sum(len(f.values) for f in self.finals.values())
                + sum(map(len, self.commits.values())) + sum(map(len, self.owners.values())))

    def acknowledged(self):
        return sum(1 for write in self.writes if write.outcome == OK)

    def check(self):
        return Checker(self).run()


class Checker:
    def __init__(self, history):
        self.history = history
        self.anomalies = list(history.noted)
        self.by_place = {}
        for write in history.writes:
            self.by_place.setdefault(write.place, []).append(write)
        self.events = {}
        for (session, place), events in history.polls.items():
            self.events.setdefault(place, []).append((session, events))

    def say(self, rule, text):
        self.anomalies.append(Anomaly(rule, text))

    def run(self):
        for place in sorted({*self.by_place, *self.events, *self.history.finals}):
            PlaceCheck(self, place).run()
        self.check_groups()
        return self.anomalies

    def check_groups(self):
        for (group, generation), owners in self.history.owners.items():
            for partition, members in owners.items():
                if len(members) > 1:
                    self.say("group", f"{group} generation {generation}: {partition} belongs to "
                                      f"{sorted(members)}")
        for (group, place), offsets in self.history.commits.items():
            highest = None
            for offset in offsets:
                if offset is not None and highest is not None and offset < highest:
                    self.say("group", f"{group}: committed offset of {place} went from {highest} "
                                      f"back to {offset}")
                highest = offset


class PlaceCheck:
    """The rules for one partition."""

    def __init__(self, checker, place):
        self.say, self.place, self.name = checker.say, place, f"{place[0]}-{place[1]}"
        self.history = checker.history
        self.writes = checker.by_place.get(place, [])
        self.sessions = checker.events.get(place, [])
        self.final = self.history.finals.get(place)
        self.lossy = place in self.history.lossy
        self.excused = self.history.excused.get(place, ())
        self.by_value = {write.value: write for write in self.writes}
        self.where = {}  # value -> offsets in the final log
        for offset, value in (self.final.values if self.final else {}).items():
            self.where.setdefault(value, []).append(offset)

    def run(self):
        if self.final is None:
            self.say("unseen", f"{self.name}: nobody read it to its end")
            return
        self.offsets = sorted(self.final.values)
        self.check_offsets()
        self.check_losses()
        self.check_values()
        self.check_sends()
        for session, events in self.sessions:
            self.check_session(session, events)

    # Two values at one offset. Where a cut may take what was shown, only between two cuts.
    def check_offsets(self):
        known = {}

        def see(age, offset, value, by):
            there, who = known.setdefault((age, offset), (value, by))
            if there != value:
                self.say("inconsistent-offset", f"{self.name} offset {offset}: {there[:40]!r} "
                                                f"({who}), then {value[:40]!r} ({by})")

        for write in self.writes:
            if write.outcome == OK and write.offset is not None:
                see(write.age if write.may_lose_s else -1, write.offset, write.value, "answer")
        for session, events in self.sessions:
            for age, kind, _, records in events:
                for offset, value in records or ():
                    see(age if self.lossy else -1, offset, value, session.name)
        for offset, value in self.final.values.items():
            see(len(self.history.cuts) if self.lossy else -1, offset, value, "at the end")

    def may_be_gone(self, write):
        """The age at the first cut if that was near enough to take the record, else None."""
        at = bisect.bisect_left(self.history.cuts, write.end)
        if write.may_lose_s and at < len(self.history.cuts):
            age = self.history.cuts[at] - write.end
            if age <= write.may_lose_s:
                return age
        return None

    def check_losses(self):
        shown = {}
        for session, events in self.sessions:
            for _, kind, _, records in events:
                shown.update(records or ())
        highest = max([*shown, *self.offsets], default=-1)
        first_lost, survivors = {}, {}  # per stretch between two cuts
        for write in self.writes:
            if write.outcome != OK or (write.offset is not None and
                                       write.offset < self.final.start):
                continue
            found = self.where.get(write.value)
            if found is None and write.offset in self.excused:
                continue
            if found is None:
                self.lost(write, highest, first_lost)
            elif write.offset is not None and write.offset not in found:
                self.say("inconsistent-offset", f"{write} was answered with {write.offset} and is "
                                                f"at {found}")
            elif write.may_lose_s and write.offset is not None:
                survivors[write.age] = max(survivors.get(write.age, -1), write.offset)
        for age, offset in first_lost.items():
            if survivors.get(age, -1) > offset:
                self.say("lost", f"{self.name}: {offset} is gone though {survivors[age]}, written "
                                 "after it, is there")
        if self.lossy:
            return
        for offset, value in shown.items():
            if offset >= self.final.start and offset not in self.final.values and (
                    offset not in self.excused):
                self.say("lost", f"{self.name} offset {offset}: {value[:40]!r} was shown and is "
                                 "gone")

    def lost(self, write, highest, first_lost):
        age = self.may_be_gone(write)
        if age is None:
            rule = "lost" if write.offset is None or write.offset <= highest else "unseen"
            self.say(rule, f"{write} was acknowledged at {write.offset} and is gone")
            return
        figures = self.history.figures
        figures["may lose, lost"] += 1
        figures["oldest of them, s"] = max(figures["oldest of them, s"], age)
        if write.offset is not None:
            first_lost[write.age] = min(first_lost.get(write.age, math.inf), write.offset)

    # What is read was written, once, and not refused.
    def check_values(self):
        for value, offsets in self.where.items():
            write = self.by_value.get(value)
            if write is None:
                self.say("aborted-read", f"{self.name} offset {offsets[0]}: nobody wrote "
                                         f"{value[:40]!r}")
            elif write.outcome == FAILED:
                self.say("aborted-read", f"{write} was refused and is at {offsets[0]}")
            elif len(offsets) > 1 and (write.idempotent or not write.retried):
                self.say("duplicate", f"{write} is at {offsets}")
        for session, events in self.sessions:
            for _, kind, _, records in events:
                for offset, value in records or ():
                    write = self.by_value.get(value)
                    if write is None or write.outcome == FAILED:
                        self.say("aborted-read", f"{session.name} read {value[:40]!r} at {offset} "
                                                 f"of {self.name}, which was "
                                                 f"{'refused' if write else 'never written'}")

    def check_sends(self):
        last, carried = {}, {}
        for write in self.writes:
            offset = write.offset
            if write.outcome != OK or (write.retried and not write.idempotent):
                continue
            if offset is None:
                offset = min(self.where.get(write.value, [math.inf]))
            if write.may_lose_s and self.may_be_gone(write) is not None:
                continue
            if offset <= last.get(write.session, -1):
                self.say("non-monotonic", f"{write.session.name}: {write} at {offset}, sent after "
                                          f"what is at {last[write.session]} "
                                          f"({carried[write.session]})")
            elif offset != math.inf:
                last[write.session], carried[write.session] = offset, write

    def check_session(self, session, events):
        position, seen = None, {}
        for _, kind, asked, records in events:
            if kind == "seek":
                position = None
                continue
            if kind == "truncated":
                seen = {o: v for o, v in seen.items() if o < asked}
                position = None if position is None else min(position, asked)
                continue
            for offset, value in records:
                if position is None:
                    position = asked
                if offset < position:
                    self.say("non-monotonic", f"{session.name} read {offset} of {self.name} at "
                                              f"position {position}")
                elif offset > position:
                    self.jumped(session, position, offset)
                if seen.setdefault(offset, value) != value:
                    self.say("offset-reuse", f"{session.name} saw {seen[offset][:40]!r} at "
                                             f"{offset} of {self.name}, then {value[:40]!r}")
                    seen[offset] = value
                position = offset + 1

    def jumped(self, session, position, offset):
        at = bisect.bisect_left(self.offsets, position)
        if at < len(self.offsets) and self.offsets[at] < offset:
            self.say("skipped", f"{session.name} went from {position} to {offset} of {self.name} "
                                f"over {self.offsets[at]}")
