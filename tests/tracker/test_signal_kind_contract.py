"""What every kind of signal keeps to, those that recrawl tells and any other name: heard, counted and audited alike."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_sites import START, Ground, audit_site, honest, random_noise
from service_ground import Ground as Service

from recrawl.cli.main import cli
from recrawl.errors import InvalidInput
from recrawl.store.rows import NewPage, PendingSignal
from recrawl.store.store import open_store
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.kinds import NEIGHBOUR, NOW, OTHER, OURS, SIGNALS
from recrawl.tracker.settings.settings import SignalRules

NEW = "email"
HEARD = [kind for kind in (*SIGNALS, NEW) if kind not in (NOW, OTHER)]
LATER = START + DAY_S
KINDS = pytest.mark.parametrize("kind", HEARD)
NO_KINDS = ["", "CMS", "1a", "a" * 41, "a b", "a\n", "é"]


@KINDS
def test_signals_within_a_moment_are_one_and_a_crawl_answers_them(kind: str) -> None:
    ground = Ground(2, rules=SignalRules(kinds=(kind,)))
    for turn in range(5):
        assert ground.book.heard([1], kind, LATER + 0.1 * turn) == 1
    assert ground.book.heard_of(1) == {kind: 1}
    assert ground.book.heard_of(2) == {}
    ground.take(ground.rows[0])
    ground.crawled(ground.rows[0], LATER + 10.0, LATER + 9.0, changed=True)
    assert ground.book.heard_of(1) == {}


@pytest.mark.parametrize("kind", [kind for kind in HEARD if kind != NEIGHBOUR])  # which crawls of the site tell too
def test_a_kind_is_believed_as_far_as_it_is_true(kind: str) -> None:
    true, noise = audit_site(honest, 3, 300, kind), audit_site(random_noise, 3, 300, kind)
    (believed,) = [each for each in true.book.trust_in("h0.example") if each.kind == kind]
    assert believed.listened
    assert believed.precision > 0.5
    told = [each for each in noise.book.trust_in("h0.example") if each.kind == kind and each.listened]
    assert all(each.precision < believed.precision for each in told)


@KINDS
def test_what_was_heard_outlives_a_restart(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await store.add_pages([NewPage("https://h0.example/1", "h0.example")])
        await store.add_signals([1], kind, LATER)
        (pending,) = await store.pending_signals()
        assert pending == PendingSignal(1, kind, 1, LATER, LATER)
        ground = Ground(1, rules=SignalRules())
        ground.book.restore([pending], LATER + 1.0)
        assert ground.book.heard_of(1) == {kind: 1}
        await store.close()

    asyncio.run(story())


@KINDS
def test_settings_may_name_it_and_strangers_may_tell_it_unless_it_is_ours(
    tmp_path: Path, ground: Service, kind: str
) -> None:
    assert SignalRules(kinds=(kind,)).hears(kind)
    told = CliRunner().invoke(cli, ["signal", "https://a.example/", "--kind", kind, "--store", str(tmp_path / "data")])
    body = {"urls": ["https://kinds.example/"], "kind": kind}
    answer = ground.ask("POST", "/api/v1/signals", json=body)
    assert ("tells itself" in told.output) == (kind in OURS)
    assert (answer.status_code == 422) == (kind in OURS), answer.text


@pytest.mark.parametrize("name", NO_KINDS)
def test_what_is_no_kind_is_refused_everywhere_by_one_pattern(tmp_path: Path, ground: Service, name: str) -> None:
    with pytest.raises(InvalidInput, match="small letter"):
        SignalRules(kinds=(name,))
    told = CliRunner().invoke(cli, ["signal", "https://a.example/", "--kind", name, "--store", str(tmp_path / "data")])
    assert told.exit_code == 2
    assert "small letter" in told.output
    answer = ground.ask("POST", "/api/v1/signals", json={"urls": ["https://kinds.example/"], "kind": name})
    assert answer.status_code in (400, 422)


def test_a_request_to_fetch_now_and_the_rest_of_many_kinds_are_no_signals_of_their_own() -> None:
    assert {NOW, OTHER, NEIGHBOUR} <= OURS
    book = Ground(1, rules=SignalRules()).book
    assert book.heard([1], NOW, LATER) == 0
