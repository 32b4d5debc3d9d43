"""Everything that a demo computes, once and with a handful of pages, before anyone looks at a clock.

What is compiled on the first run on a machine, and loaded on every other, would else stall the tracker while it is
measured, and the shadows beside it would not notice.
"""

from __future__ import annotations

import numpy as np

from recrawl.demo.measuring import Race
from recrawl.demo.scene import Scene
from recrawl.livingweb.world import LivingWorld
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.warming import warm_up
from recrawl.service.budget_curve import budget_curve
from recrawl.service.estimates import Estimator
from recrawl.web.detect import Visit, detect
from recrawl.web.digests import digest_page, layer_text
from recrawl.web.page_text import read_page

_PAGES = 24
_HOURS = 6
_BEGINS = 1_767_225_600
_HOUR_S = 3600.0
_FETCHES = (
    b"<h1>News</h1><p>Nothing yet.<p>It is 10:00:00<p>3 views<p>advert one",
    b"<h1>News</h1><p>Something new.<p>It is 11:00:05<p>5 views<p>advert two",
    b"<h1>News</h1><p>Something new.<p>It is 11:00:08<p>5 views<p>advert three",
)


def rehearse() -> None:
    """Compile or load it all; some seconds, and most of a minute on a machine that has never compiled it."""
    warm_up(signals=False)
    _race()
    _judge()
    _look_on()


def _race() -> None:
    scene = Scene(pages=_PAGES, budget_per_s=_PAGES / 10)
    race = Race(LivingWorld(scene.world(_BEGINS)), scene.budget_per_day, float(_BEGINS))
    for hour in range(_HOURS):
        race.sample(_BEGINS + hour * _HOUR_S, float(hour))


def _judge() -> None:
    """A page that changes, and shows noise as well."""
    texts = []
    for body in _FETCHES:
        page = read_page(body, "text/html")
        digest_page(body, page)
        texts.append(layer_text("text", body, page))
    memory = detect(None, Visit(texts[0], fetched_at=_BEGINS)).memory
    detect(memory, Visit(texts[1], texts[0], (texts[2],), _BEGINS + _HOUR_S))


def _look_on() -> None:
    """What the dashboard shows."""
    scheduler = Scheduler(float(_PAGES), "freshness", burst=float(_PAGES))
    ids = scheduler.add(importance=np.ones(_PAGES), host=np.zeros(_PAGES, dtype=np.int64))
    scheduler.take(1.0, _PAGES // 2)
    estimator = Estimator(scheduler)
    estimator.look(1.0)
    estimator.believed(ids, np.ones(_PAGES))
    budget_curve(scheduler, "freshness")
