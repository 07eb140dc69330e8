"""Pages in a real browser: nothing is fetched, everything is drawn, no text of a model runs."""

from __future__ import annotations

import re
from dataclasses import replace

import nbformat
from nbconvert import HTMLExporter

from bench_lib.evaluate import page as render
from bench_lib.report import cards, kit, theme
from bench_lib.report.figures import memory_figures
from bench_lib.report.kit import figures
from bench_lib.schema import Response

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
HOSTILE = (
    '<script>window.ran = "script"</script>',
    "<img src=x onerror=\"window.ran = 'img'\">",
    '"><svg onload="window.ran = \'svg\'">',
    "</pre></style></title><script>window.ran = 'closed'</script>",
    "' onmouseover='window.ran=1' {{ 7 * 7 }} {% raw %}",
)


def shown(browser, page, folder, width=1200):
    """Open a page without its own protection, so that what it holds is what is tested."""
    bare, count = POLICY.subn("", page)
    assert count == 1
    path = folder / "page.html"
    path.write_text(bare, encoding="utf-8")
    browser.open(path, width)


def test_a_page_asks_for_nothing_and_draws_every_figure(full_page, browser, tmp_path):
    shown(browser, full_page, tmp_path)
    assert browser.requests == []
    figures = browser.drawn()
    assert len(figures) == 7
    assert all(f["drawn"] and f["width"] > 200 and f["height"] > 100 for f in figures), figures
    assert all(len(f["label"]) > 30 for f in figures)
    assert browser.value("document.images.length") == browser.value(
        "[...document.images].filter(i => i.alt && i.naturalWidth > 0).length"
    )
    assert browser.value("document.scripts.length") == 0


def test_the_browser_would_notice_a_request(full_page, browser, tmp_path):
    page = full_page.replace("</body>", '<img src="https://example.invalid/a.png" alt="x"></body>')
    shown(browser, page, tmp_path)
    assert browser.requests == ["https://example.invalid/a.png"]


def test_the_browser_would_notice_an_empty_figure(browser, tmp_path):
    path = tmp_path / "empty.html"
    path.write_text('<svg role="img" aria-label="nothing" width="10" height="10"></svg>')
    browser.open(path)
    assert [f["drawn"] for f in browser.drawn()] == [False]


def test_no_page_is_wider_than_its_window(build, browser, tmp_path):
    long = "x" * 400
    material = build(facts={"source_note": long, "quarantined": [long]}, name=long[:80])
    page = render.of(material).html
    for width in (390, 768, 1200):
        shown(browser, page, tmp_path, width)
        assert browser.value("document.documentElement.scrollWidth") <= width


def test_a_printed_page_fits_its_paper(full_page, browser, tmp_path):
    browser.printing(True)
    try:
        shown(browser, full_page, tmp_path, 718)  # A4 less its margins, at 96 dots an inch
        assert browser.value("document.documentElement.scrollWidth") <= 718
    finally:
        browser.printing(False)


def hostile(record: Response) -> Response:
    text = HOSTILE[sum(map(ord, record.candidate)) % len(HOSTILE)]
    update = {"raw_text": text, "text": text, "reason": text, "error": text, "repairs": (text,)}
    return record.model_copy(update={**update, "missing_sessions": (text,)})


def poisoned(build):
    """A run in which every text that someone else wrote is hostile."""
    material = build(
        change=hostile,
        facts={
            "model": HOSTILE[0],
            "model_note": HOSTILE[0],
            "source_note": HOSTILE[1],
            "quarantined": list(HOSTILE),
            "device": HOSTILE[2],
            "method_args": {"clip_frames": 8, "fps": 1.0, HOSTILE[3]: HOSTILE[4]},
        },
    )
    asks = {}
    for key, (owner, ask) in material.asks.items():
        candidate = ask.candidate.model_copy(
            update={
                "question": HOSTILE[0],
                "options": tuple(
                    o.model_copy(update={"text": HOSTILE[3] + o.id}) for o in ask.candidate.options
                ),
                "evidence": tuple(
                    m.model_copy(update={"text": HOSTILE[2]}) for m in ask.candidate.evidence
                ),
                "registration": ask.candidate.registration
                and ask.candidate.registration.model_copy(update={"text": HOSTILE[1]}),
            }
        )
        asks[key] = (
            owner.model_copy(update={"title": HOSTILE[4]}),
            replace(ask, candidate=candidate),
        )
    made = replace(material, asks=asks)
    renamed = [
        {**record, "trajectory": f"{HOSTILE[0]} $x^{{2}}$ {record['trajectory']}"}
        for record in material.sessions
    ]
    made.__dict__["sessions"] = tuple(renamed)
    return made


def test_hostile_text_is_shown_and_never_runs(build, browser, tmp_path):
    page = render.of(poisoned(build)).html
    shown(browser, page, tmp_path)
    assert browser.value("window.ran === undefined")
    assert browser.value("document.scripts.length") == 0
    assert (
        browser.value("document.querySelectorAll('[onload], [onerror], [onmouseover]').length") == 0
    )
    assert browser.requests == []
    text = browser.value("document.body.textContent")
    for line in HOSTILE:
        assert line in text
    assert len(browser.drawn()) == 7


def test_the_browser_would_notice_text_that_runs(full_page, browser, tmp_path):
    page = full_page.replace("</body>", HOSTILE[0] + "</body>")
    shown(browser, page, tmp_path)
    assert browser.value("window.ran") == "script"


def test_a_page_protects_itself(full_page, browser, tmp_path):
    path = tmp_path / "guarded.html"
    unsafe = HOSTILE[0] + '<img src="https://example.invalid/a.png" alt="x"></body>'
    path.write_text(full_page.replace("</body>", unsafe), encoding="utf-8")
    browser.open(path)
    assert browser.value("window.ran === undefined")


def test_fragments_carry_their_own_style(full, browser, tmp_path):
    fragment = figures(memory_figures(full))
    path = tmp_path / "fragment.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{fragment._repr_html_()}")
    browser.open(path)
    assert browser.requests == []
    assert [f["drawn"] for f in browser.drawn()] == [True] * 3
    assert "figures" in repr(fragment)


def test_names_of_facts_keep_their_words_whole_in_a_notebook(full, browser, tmp_path):
    """Notebooks lay out lists of terms in a way of their own, which must not reach ours."""
    page = kit.cards(cards.replies(full))._repr_html_()
    output = nbformat.v4.new_output("display_data", {"text/html": page})
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    notebook = nbformat.v4.new_notebook(cells=[cell])
    path = tmp_path / "notebook.html"
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    browser.open(path)
    lines = browser.value(
        "[...document.querySelectorAll('dt')].map(d => { const r = document.createRange();"
        "r.selectNodeContents(d); return r.getClientRects().length; })"
    )
    assert len(lines) > 5
    assert set(lines) == {1}
    widths = browser.value("[...document.querySelectorAll('dd')].map(d => d.offsetWidth)")
    assert min(widths) > 150


def test_ids_of_figures_never_meet(full_page):
    ids = re.findall(r'\bid="([^"]+)"', full_page)
    assert len(ids) == len(set(ids)) > 50
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', full_page)
    assert {name for pair in used for name in pair if name} <= set(ids)


def test_each_capability_has_one_colour_of_its_own(full_page):
    assert len(set(theme.COLOURS.values())) == len(theme.COLOURS)
    for name in list(theme.COLOURS)[:3]:
        assert full_page.count(theme.COLOURS[name]) > 5, name
