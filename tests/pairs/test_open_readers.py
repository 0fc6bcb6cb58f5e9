"""Readers wait for the next block of their file, but not for ever."""

from __future__ import annotations

from judgebias.pairs.reopen import OpenReaders


class Reader:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_the_nearest_reader_before_the_block_is_taken_once() -> None:
    readers: OpenReaders[Reader] = OpenReaders()
    near, far = Reader(), Reader()
    readers.give("file", 5, far)
    readers.give("file", 9, near)
    assert readers.take("file", 4) is None
    assert readers.take("other", 9) is None
    assert [readers.take("file", 10) for _ in range(3)] == [near, far, None]


def test_side_by_side_readers_are_kept_and_the_oldest_makes_room() -> None:
    readers: OpenReaders[Reader] = OpenReaders()
    made = [Reader() for _ in range(17)]
    for number, reader in enumerate(made):
        readers.give(number, 0, reader)
    assert [reader.closed for reader in made] == [True] + [False] * 16
    readers.close()
    assert all(reader.closed for reader in made)


def test_a_reader_that_nobody_goes_on_with_is_let_go() -> None:
    readers: OpenReaders[Reader] = OpenReaders()
    left, used = Reader(), Reader()
    readers.give("left", 0, left)
    for turn in range(40):
        assert left.closed == (turn > 31)
        readers.give("used", turn, used)
        assert readers.take("used", turn) is used
    assert not used.closed
