"""ECHO (Lefortier et al. 2013), Table 1: what policies capture of the hits on short-lived new pages.

The paper's graph of news sites and its clicks are not public; `lab/worlds/news.py` says how ours are drawn, and
`lab/simulation/news.py` how the policies crawl them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.parallel import workers
from recrawl.lab.simulation.news import NewsRun, crawl_at_birth, quality, run_news
from recrawl.lab.worlds.news import PAPER_SITES, news_world
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, Series, bars_figure

DAYS = 21.0
WINDOW = 7.0
SECONDS = 86_400.0
_MOMENTS_A_DAY = 720  # every two minutes
_ALMOST_NEVER = 1


RATES = (0.05, 0.1, 0.2)
NAMES = {
    "frequency": "Frequency",
    "bfs": "BFS",
    "fixed-quota": "Fixed quota",
    "echo-greedy": "ECHO-greedy",
    "echo-schedule": "ECHO-schedule",
    "echo-newpages": "ECHO-newpages",
    "market": "One price",
}
"""What the policies are called in tables."""

POLICIES = ("frequency", "bfs", "fixed-quota", "echo-greedy", "echo-schedule", "echo-newpages")
_LOW, _MIDDLE, _HIGH = range(3)

_LAWS = (
    "The paper's graph and clicks are not public. Ours has its counts: 150 sites of 20 sources, 415,000 new pages in "
    "three weeks, 5.8 links a page, a fifth of the pages ever hit, 0.72 hits a second on average. Pages a day and hits "
    "a day of sites are lognormal (σ 1.5) and independent, sections of a site differ by σ 1, a source shows its latest "
    "20 to 60 links, interest fades at 0.7 a day (median), births have a daily rhythm. These laws were fixed before "
    "any policy was run."
)
_LEARNING = (
    "As the paper words it, hits of a page count for every source seen to link to it, and every link to a new page is "
    "a new link of its source, whether or not another source had shown the page. Logs tell all hits of every page "
    "found, and pages carry their time of birth. Profit and decay of a source are fitted again when its hits or pages "
    "have grown by half."
)
_START = (
    "The paper does not say how sources get their first crawl. Here a source that was not crawled since the start has "
    "waited for ever: it is due, and comes before other sources, in random order."
)
_BASELINES = (
    "Frequency is ECHO-schedule with equal profit and decay. The fixed quota solves the intervals for half of the "
    "crawls, without the cost of pages, and lets sources and pages take turns."
)
_SPARE = (
    "Where sources keep to a schedule, a crawl for which no page waits and no source is due goes to the source not "
    "crawled for longest: the paper has poor sources crawled just in case when resources are to spare. ECHO-newpages "
    "and ECHO-greedy have no such crawls: they take the source that is most behind."
)
_SETTLED = (
    "How links and hits are counted, how sources get their first crawl and where spare crawls go was settled after "
    "first runs on small graphs, by what the paper's text says where it says anything; the laws of the graph were not "
    "touched."
)
GRAPH_NOTES = (_LAWS, _LEARNING, _START, _SPARE, _SETTLED)
"""Set-up that all experiments on news share."""

CONFIRMING = 100
"""The first seed of the full runs: smaller seeds were seen while the policies' set-up was settled."""


class GraphTask(NamedTuple):
    """One graph, the policies that crawl it, and the crawls per second for each if it had the paper's size."""

    sites: int
    seed: int
    policies: tuple[str, ...]
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """What came out, by policy and rate; quality in hits per second if the graph had the paper's size.

    Attributes:
        quality: the mean, in the last week, of what was captured per second in the week before.
        spread: its standard deviation over that time.
        on_sources: the share of the crawls in the last week that went to sources.
        idle: the share of sources crawled at most once in the last week.
        bound: the quality if every page is crawled at birth.
    """

    quality: Floats
    spread: Floats
    on_sources: Floats
    idle: Floats
    bound: float


def run_graph(task: GraphTask) -> GraphOutcome:
    """Runs on a graph of news, as Table 1 of ECHO measures them (Lefortier et al. 2013, section 5.3.3).

    Each graph is a function of its task alone, so that graphs run in several processes and come out the same. Smaller
    graphs have the same laws, and crawls in proportion to their sites.

    Run every policy at every rate on one graph.
    """
    world = news_world(task.sites, DAYS, task.seed)
    size = task.sites / PAPER_SITES
    shape = len(task.policies), len(task.rates)
    bound = measured(crawl_at_birth(world))[0] / size
    out = GraphOutcome(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape), bound)
    for p, policy in enumerate(task.policies):
        for r, rate in enumerate(task.rates):
            run = run_news(world, policy, rate * SECONDS * size, task.seed)
            mean, spread = measured(run)
            out.quality[p, r], out.spread[p, r] = mean / size, spread / size
            out.on_sources[p, r] = run.source_crawls / (run.source_crawls + run.page_crawls)
            out.idle[p, r] = (run.crawls_by_source() <= _ALMOST_NEVER).mean()
    return out


def measured(run: NewsRun) -> tuple[float, float]:
    """Mean and standard deviation over the last week of the hits captured per second in the week before."""
    end = run.world.horizon
    moments = end - np.arange(int(WINDOW * _MOMENTS_A_DAY)) / _MOMENTS_A_DAY
    values = quality(run, WINDOW, moments) / SECONDS
    return float(values.mean()), float(values.std())


class Size(NamedTuple):
    """How many graphs, and how large."""

    sites: int
    graphs: int
    first_seed: int = 0


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Table 1."""
    yield table1(Size(20, 4) if scale.quick else Size(PAPER_SITES, 8, CONFIRMING), scale.workers)


def table1(size: Size, processes: int = 1) -> Experiment:
    """Quality of every policy at every rate, and the bound."""
    outcomes = run_graphs(size, POLICIES, RATES, processes)
    quality = np.array([outcome.quality for outcome in outcomes])
    bound = np.array([outcome.bound for outcome in outcomes])
    return Experiment(
        "echo.table1",
        "Hits captured per second, one-week window",
        quality_table(outcomes, POLICIES, RATES),
        _findings(dict(zip(POLICIES, quality.transpose(1, 0, 2), strict=True)), bound, outcomes),
        lambda: bars_figure([quality_panel(outcomes, POLICIES, RATES), _spending_panel(outcomes)]),
        (*GRAPH_NOTES, _BASELINES, *size_note(size)),
    )


def run_graphs(size: Size, policies: tuple[str, ...], rates: tuple[float, ...], processes: int) -> list[GraphOutcome]:
    """Run policies on graphs, one for each seed."""
    seeds = range(size.first_seed, size.first_seed + size.graphs)
    with workers(processes) as run:
        return run(run_graph, [GraphTask(size.sites, seed, policies, rates) for seed in seeds])


def size_note(size: Size) -> tuple[str, ...]:
    """What a smaller graph is, if it is one."""
    if size.sites == PAPER_SITES:
        return ()
    return (f"{size.sites} sites instead of {PAPER_SITES}: crawls are fewer and hits are scaled up in proportion.",)


def _findings(quality: dict[str, Floats], bound: Floats, outcomes: Sequence[GraphOutcome]) -> tuple[Finding, ...]:
    def ratio(claim: str, above: str, below: str, rate: int = _MIDDLE) -> Finding:
        return mean_finding(f"echo.table1.{claim}", (quality[above][:, rate] / quality[below][:, rate]).tolist())

    newpages = quality["echo-newpages"] / bound[:, None]
    closest = int(newpages.mean(axis=0).argmax())
    idle = [float(outcome.idle[POLICIES.index("echo-newpages"), _MIDDLE]) for outcome in outcomes]
    return (
        ratio("frequency_below_bfs", "frequency", "bfs"),
        ratio("bfs_below_quota", "bfs", "fixed-quota"),
        ratio("quota_below_greedy", "fixed-quota", "echo-greedy"),
        ratio("greedy_up_to_schedule", "echo-greedy", "echo-schedule"),
        ratio("schedule_up_to_newpages", "echo-schedule", "echo-newpages"),
        mean_finding("echo.table1.newpages_up_to_bound", newpages[:, closest].tolist()),
        mean_finding("echo.table1.newpages_share_010", newpages[:, _MIDDLE].tolist()),
        mean_finding("echo.table1.newpages_share_020", newpages[:, _HIGH].tolist()),
        ratio("greedy_above_schedule_005", "echo-greedy", "echo-schedule", _LOW),
        mean_finding("echo.table1.most_sources_idle", idle),
    )


def quality_table(outcomes: Sequence[GraphOutcome], policies: Sequence[str], rates: Sequence[float]) -> Table:
    """A row for each policy and rate, and one for the bound."""
    bound = np.array([outcome.bound for outcome in outcomes])
    rows: list[tuple[str | float, ...]] = []
    for p, policy in enumerate(policies):
        for r, rate in enumerate(rates):
            quality = np.array([outcome.quality[p, r] for outcome in outcomes])
            rows.append(
                (
                    NAMES[policy], rate, *_interval(quality), _mean(outcomes, "spread", p, r),
                    float((quality / bound).mean()), _mean(outcomes, "on_sources", p, r), _mean(outcomes, "idle", p, r),
                )
            )  # fmt: skip
    rows.append(("Upper bound", "any", *_interval(bound), 0.0, 1.0, 0.0, 1.0))
    columns = (
        "policy", "crawls per second", "hits per second", "low", "high", "spread over time", "share of the bound",
        "crawls on sources", "sources crawled at most once a week",
    )  # fmt: skip
    return Table(columns, rows)


def quality_panel(outcomes: Sequence[GraphOutcome], policies: Sequence[str], rates: Sequence[float]) -> BarPanel:
    """Bars of quality, with the bound as a line."""
    series = []
    for p, policy in enumerate(policies):
        intervals = [_interval(np.array([outcome.quality[p, r] for outcome in outcomes])) for r in range(len(rates))]
        series.append(Series(NAMES[policy], *np.array(intervals).T))
    return BarPanel(
        "Hits captured (dashed: the bound)", "hits per second", [f"{rate:g} crawls/s" for rate in rates], series,
        reference=float(np.mean([outcome.bound for outcome in outcomes])),
    )  # fmt: skip


def _spending_panel(outcomes: Sequence[GraphOutcome]) -> BarPanel:
    series = [
        Series(NAMES[policy], [_mean(outcomes, "on_sources", p, r) for r in range(len(RATES))])
        for p, policy in enumerate(POLICIES)
    ]
    return BarPanel(
        "Crawls that went to sources", "share of crawls", [f"{rate:g} crawls/s" for rate in RATES], series
    )  # fmt: skip


def _mean(outcomes: Sequence[GraphOutcome], what: str, policy: int, rate: int) -> float:
    return float(np.mean([getattr(outcome, what)[policy, rate] for outcome in outcomes]))


def _interval(samples: Floats) -> tuple[float, float, float]:
    found = mean_finding("", samples.tolist())
    return found.value, found.low, found.high
