"""A trajectory at a glance: its sessions end to end, and where its evidence and probes lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_lib.report.kit import Fragment, figures
from bench_lib.report.text import clipped, duration, plural
from bench_lib.report.theme import INK, MUTED, Figure, colour, draw, hours_or_less, tint
from bench_lib.schema import Trajectory, clock
from bench_lib.tasks import APM_BENCH, bench_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def figure(trajectory: Trajectory) -> Fragment:
    """One lane per task: evidence as bars, registrations as triangles, probes as dots."""
    return figures([drawn(trajectory)])


def drawn(trajectory: Trajectory) -> Figure:
    """The figure by itself."""
    starts, total_s = {}, 0.0
    for session in trajectory.sessions:
        starts[session.id] = total_s
        total_s += session.duration_s
    step, unit = hours_or_less(total_s)
    bench = bench_of(trajectory.candidates[0].task) if trajectory.candidates else APM_BENCH
    order = [task.code for task in bench.tasks]
    codes = sorted(
        {c.task for c in trajectory.candidates},
        key=lambda code: order.index(code) if code in order else len(order),
    )

    def at(session: str, t_s: float) -> float:
        return (starts[session] + t_s) / step

    def paint(axes: Axes) -> None:
        bottom = len(codes) - 0.5
        for i, session in enumerate(trajectory.sessions):
            begin, end = at(session.id, 0), at(session.id, session.duration_s)
            axes.axvspan(begin, end, color="#eef1f4" if i % 2 else "#f8f9fb", zorder=0, linewidth=0)
            day, _, time = clock(session.wall_start_s).partition(" ")
            name = clipped(session.id, 10)
            label = f"{name}\n{day} {time[:5]}" if day else name
            axes.text(
                (begin + end) / 2, -0.75, label, ha="center", va="bottom", fontsize=7.5, color=MUTED
            )
        for lane, code in enumerate(codes):
            shade = colour(bench.task(code).capability)
            for candidate in (c for c in trajectory.candidates if c.task == code):
                for moment in candidate.evidence:
                    axes.plot(
                        [at(moment.session, moment.start_s), at(moment.session, moment.end_s)],
                        [lane, lane],
                        linewidth=6,
                        color=tint(shade, 0.4),
                        solid_capstyle="butt",
                    )
                if candidate.registration:
                    said = candidate.registration
                    axes.plot(at(said.session, said.t_s), lane, ">", color=INK, markersize=5)
                for probe in candidate.probes:
                    axes.plot(
                        at(probe.session, probe.t_s),
                        lane,
                        "o",
                        color=shade,
                        markerfacecolor="white" if probe.polarity == "negative" else shade,
                        markersize=4.5,
                    )
        axes.set_yticks(range(len(codes)), codes)
        axes.set_ylim(bottom, -0.7)
        axes.set_xlim(0, total_s / step)
        axes.set_xlabel(f"video, sessions joined [{unit}]")
        axes.grid(visible=False)

    alt = (
        f"Timeline of {plural(len(trajectory.sessions), 'session')}, {duration(total_s)} in all, "
        f"with {plural(len(trajectory.candidates), 'candidate')} of the tasks "
        f"{', '.join(codes) or 'none'}."
    )
    note = "Bars: evidence. Triangles: registrations. Dots: probes, hollow where silence is right."
    name = trajectory.title or trajectory.id
    return draw(name, paint, alt, note, inches=(8.6, 1.2 + 0.27 * max(1, len(codes))))
